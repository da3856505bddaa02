"""A head kept by views: KeyError, for a comparison by which two views are joined names a third one's variable.

r0: int64, int64; 2 rows
r1: int64; 2 rows
r2: int64; 2 rows

h0[] = count() <- r0(a, b), r1(c), r2(d), c > (a * 0) + d.
"""

from fuzz.words import *

CASE = Case(kind='kept', tables=(Table(name='r0', types=('int64', 'int64'), rows=((1, 2), (3, 4))), Table(name='r1', types=('int64',), rows=((5,), (1,))), Table(name='r2', types=('int64',), rows=((2,), (0,)))), program=(Rule(heads=(Head(relation='h0', terms=(), value=Aggregate(function='count')),), body=(Atom(relation='r0', terms=(Variable(name='a'), Variable(name='b'))), Atom(relation='r1', terms=(Variable(name='c'),)), Atom(relation='r2', terms=(Variable(name='d'),)), Comparison(operator='>', left=Variable(name='c'), right=Arithmetic(operator='+', left=Arithmetic(operator='*', left=Variable(name='a'), right=Constant(value=0)), right=Variable(name='d'))))),), steps=(Commit(staged=(('r1', (9,), 1),)), Commit(staged=(('r0', (1, 2), -1), ('r2', (2,), -1)))), options={'strategies': ('views',), 'others': ('delta',), 'merges': (0, 1), 'errors_count': True})

if __name__ == "__main__":
    repeat(CASE)
