"""A stage's list was too short for what the first two of its participants share: the process died.

r0: int64, int64; 5 rows
r1: int64, int64, int64; 5 rows

h(v5, v4, v2) <- r1(v1, v2, _), r0(v2, v1), r1(v5, v2, v3), r1(v1, v2, v2), r1(v4, _, v2), !r1(v1, v3, v2).
"""

from fuzz.words import *

CASE = Case(kind='once', tables=(Table(name='r0', types=('int64', 'int64'), rows=((0, 3), (0, 7), (0, 8), (0, 11), (0, 15))), Table(name='r1', types=('int64', 'int64', 'int64'), rows=((3, 0, 3), (7, 0, 0), (8, 0, 0), (11, 0, 3), (15, 0, 3)))), program=(Rule(heads=(Head(relation='h', terms=(Variable(name='v5'), Variable(name='v4'), Variable(name='v2'))),), body=(Atom(relation='r1', terms=(Variable(name='v1'), Variable(name='v2'), Wildcard())), Atom(relation='r0', terms=(Variable(name='v2'), Variable(name='v1'))), Atom(relation='r1', terms=(Variable(name='v5'), Variable(name='v2'), Variable(name='v3'))), Atom(relation='r1', terms=(Variable(name='v1'), Variable(name='v2'), Variable(name='v2'))), Atom(relation='r1', terms=(Variable(name='v4'), Wildcard(), Variable(name='v2'))), Atom(relation='r1', terms=(Variable(name='v1'), Variable(name='v3'), Variable(name='v2')), negated=True))),))

if __name__ == "__main__":
    repeat(CASE)
