"""A head kept by views refused a commit for a row that joins with nothing.

r0: int64, int64, int64; 1 rows
r1: int64, int64; 2 rows

h0[] = sum(v) <- r0(s, x, p), r1(s, y), v = (x * p) * y.
"""

from fuzz.words import *

CASE = Case(kind='kept', tables=(Table(name='r0', types=('int64', 'int64', 'int64'), rows=((1, 2, 3),)), Table(name='r1', types=('int64', 'int64'), rows=((1, 1), (1, 2)))), program=(Rule(heads=(Head(relation='h0', terms=(), value=Aggregate(function='sum', arguments=(Variable(name='v'),))),), body=(Atom(relation='r0', terms=(Variable(name='s'), Variable(name='x'), Variable(name='p'))), Atom(relation='r1', terms=(Variable(name='s'), Variable(name='y'))), Comparison(operator='=', left=Variable(name='v'), right=Arithmetic(operator='*', left=Arithmetic(operator='*', left=Variable(name='x'), right=Variable(name='p')), right=Variable(name='y'))))),), steps=(Commit(staged=(('r0', (7, 4611686018427387904, 9), 1),)), Commit(staged=(('r0', (7, 4611686018427387904, 9), -1),))), options={'strategies': ('views',), 'others': ('delta',), 'merges': (0, 1), 'errors_count': True})

if __name__ == "__main__":
    repeat(CASE)
