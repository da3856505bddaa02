"""A window over alternatives took a variable for one without NULL that only some of them bind so.

r0: large_string, large_string, dictionary<values=string, indices=int32, ordered=0>; 2 rows, nulls='keep'

h0(v1, v3, v4, v2), h0_b(v2, v4) <- r0(v1, v2, v3), lower(v1) = v4.
h1(v2, v1) <- h0_b(v1, v2), v1 > v1.
h2[] = count() <- h0(v1, _, v3, v4), h0(v5, _, _, v8), (h1(<=> v1, v9), v5 in ("say \\"\\\\\\"", "a", v8) ; h1(v9, v2) ; h0_b(v9, v3), !r0(v8, v4, "zzz")), v12 = rank(by: (v9 nulls first, v3), per: (v1)).
"""

from fuzz.words import *

CASE = Case(kind='kept', tables=(Table(name='r0', types=('large_string', 'large_string', 'dictionary<values=string, indices=int32, ordered=0>'), rows=(('é', None, 'aa'), ('é', '', 'B')), nulls=True),), program=(Rule(heads=(Head(relation='h0', terms=(Variable(name='v1'), Variable(name='v3'), Variable(name='v4'), Variable(name='v2'))), Head(relation='h0_b', terms=(Variable(name='v2'), Variable(name='v4')))), body=(Atom(relation='r0', terms=(Variable(name='v1'), Variable(name='v2'), Variable(name='v3'))), Comparison(operator='=', left=Call(function='lower', arguments=(Variable(name='v1'),)), right=Variable(name='v4')))), Rule(heads=(Head(relation='h1', terms=(Variable(name='v2'), Variable(name='v1'))),), body=(Atom(relation='h0_b', terms=(Variable(name='v1'), Variable(name='v2'))), Comparison(operator='>', left=Variable(name='v1'), right=Variable(name='v1')))), Rule(heads=(Head(relation='h2', terms=(), value=Aggregate(function='count')),), body=(Atom(relation='h0', terms=(Variable(name='v1'), Wildcard(), Variable(name='v3'), Variable(name='v4'))), Atom(relation='h0', terms=(Variable(name='v5'), Wildcard(), Wildcard(), Variable(name='v8'))), Either(alternatives=((Atom(relation='h1', terms=(Variable(name='v1', null_safe=True), Variable(name='v9'))), Comparison(operator='=', left=Call(function='in', arguments=(Variable(name='v5'), Constant(value='say "\\"'), Constant(value='a'), Variable(name='v8'))), right=Constant(value=True))), (Atom(relation='h1', terms=(Variable(name='v9'), Variable(name='v2'))),), (Atom(relation='h0_b', terms=(Variable(name='v9'), Variable(name='v3'))), Atom(relation='r0', terms=(Variable(name='v8'), Variable(name='v4'), Constant(value='zzz')), negated=True)))), Windowed(target=Variable(name='v12', null_safe=False), function='rank', arguments=(), per=('v1',), by=(Order(name='v9', descending=False, nulls_first=True), Order(name='v3', descending=False, nulls_first=False)), frame=None)))))

if __name__ == "__main__":
    repeat(CASE)
