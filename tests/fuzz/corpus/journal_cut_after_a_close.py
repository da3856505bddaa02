"""A folder that was closed opened in silence when its journal had been cut.

r0: bool, bool; 1 rows

h0(v1, v2) <- r0(v1, v2), !r0(v2, v2), r0(v2, v1).
h0(v3, v3) <- r0(v3, v2), h0(v3, v3), h0(v1, v2).
h1(v2), h1_b(v2) <- v2 != false, !r0(_, v2), v3 = v1, r0(v1, v2).
"""

from fuzz.words import *

CASE = Case(kind='damage', tables=(Table(name='r0', types=('bool', 'bool'), rows=((True, False),)),), program=(Rule(heads=(Head(relation='h0', terms=(Variable(name='v1'), Variable(name='v2'))),), body=(Atom(relation='r0', terms=(Variable(name='v1'), Variable(name='v2'))), Atom(relation='r0', terms=(Variable(name='v2'), Variable(name='v2')), negated=True), Atom(relation='r0', terms=(Variable(name='v2'), Variable(name='v1'))))), Rule(heads=(Head(relation='h0', terms=(Variable(name='v3'), Variable(name='v3'))),), body=(Atom(relation='r0', terms=(Variable(name='v3'), Variable(name='v2'))), Atom(relation='h0', terms=(Variable(name='v3'), Variable(name='v3'))), Atom(relation='h0', terms=(Variable(name='v1'), Variable(name='v2'))))), Rule(heads=(Head(relation='h1', terms=(Variable(name='v2'),)), Head(relation='h1_b', terms=(Variable(name='v2'),))), body=(Comparison(operator='!=', left=Variable(name='v2'), right=Constant(value=False)), Atom(relation='r0', terms=(Wildcard(), Variable(name='v2')), negated=True), Comparison(operator='=', left=Variable(name='v3'), right=Variable(name='v1')), Atom(relation='r0', terms=(Variable(name='v1'), Variable(name='v2')))))), steps=(Commit(staged=(('r0', (True, False), 1), ('r0', (True, False), 2), ('r0', (True, False), -2), ('r0', (True, False), 2), ('r0', (True, False), -2), ('r0', (False, False), 1))), Do(what='checkpoint'), Commit(staged=(('r0', (True, False), 1), ('r0', (True, False), -1))), Commit(staged=(('r0', (True, False), -1),)), Do(what='checkpoint'), Commit(staged=(('r0', (True, False), 1),)), Commit(staged=(('r0', (True, True), -1), ('r0', (True, True), 1))), Commit(staged=(('r0', (True, True), -1),)), Commit(staged=(('r0', (True, False), 1), ('r0', (True, False), -2), ('r0', (False, True), -1), ('r0', (True, False), 2), ('r0', (False, False), 1), ('r0', (False, True), -1))), Commit(staged=(('r0', (True, False), -2), ('r0', (True, False), 2), ('r0', (True, False), 1), ('r0', (True, False), -1))), Commit(staged=(('r0', (True, False), 1),)), Commit(staged=(('r0', (True, False), 1), ('r0', (True, False), 1), ('r0', (True, True), 1), ('r0', (True, False), -1), ('r0', (True, False), -1), ('r0', (False, False), 2)))), options={'durability': 'interval', 'closed': False, 'what': 'cut', 'file': 0.78712025854276, 'at': 0.7737412918516866, 'bit': 2})

if __name__ == "__main__":
    repeat(CASE)
