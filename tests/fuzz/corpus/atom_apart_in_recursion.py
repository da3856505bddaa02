"""An atom apart from the rest of a recursive body held wherever its relation had rows.

e: int64, int64; 2 rows
v: int64, int64; 1 rows

p(a, b) <- e(a, b).
p(a, c) <- p(a, b), e(b, c), v(x, x).
"""

from fuzz.words import *

CASE = Case(kind='kept', tables=(Table(name='e', types=('int64', 'int64'), rows=((1, 2), (2, 3))), Table(name='v', types=('int64', 'int64'), rows=((6, 6),))), program=(Rule(heads=(Head(relation='p', terms=(Variable(name='a'), Variable(name='b'))),), body=(Atom(relation='e', terms=(Variable(name='a'), Variable(name='b'))),)), Rule(heads=(Head(relation='p', terms=(Variable(name='a'), Variable(name='c'))),), body=(Atom(relation='p', terms=(Variable(name='a'), Variable(name='b'))), Atom(relation='e', terms=(Variable(name='b'), Variable(name='c'))), Atom(relation='v', terms=(Variable(name='x'), Variable(name='x')))))), steps=(Commit(staged=(('v', (6, 6), -1), ('v', (6, 5), 1))), Commit(staged=(('v', (7, 7), 1),)), Do(what='verify')))

if __name__ == "__main__":
    repeat(CASE)
