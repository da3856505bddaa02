"""apply_many raised IndexError where a row of the last key was replaced.

e: int64, int64; 1 rows
g: int64; 1 rows

h(a) <- e(a, _), g(a).
"""

from fuzz.words import *

CASE = Case(kind='kept', tables=(Table(name='e', types=('int64', 'int64'), rows=((5, 1),)), Table(name='g', types=('int64',), rows=((5,),))), program=(Rule(heads=(Head(relation='h', terms=(Variable(name='a'),)),), body=(Atom(relation='e', terms=(Variable(name='a'), Wildcard())), Atom(relation='g', terms=(Variable(name='a'),)))),), steps=(ApplyMany(transactions=((('e', (5, 1), -1), ('e', (5, 2), 1)),)),), options={'strategies': ('delta',), 'others': ('auto',)})

if __name__ == "__main__":
    repeat(CASE)
