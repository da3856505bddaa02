"""Bytes were refused by a column of their width.

r0: binary_view, fixed_size_binary[2]; 3 rows, nulls='keep'
r1: binary, fixed_size_binary[2]; 0 rows, nulls='keep'

h0[] = max(v1) <- r1(v1, v1), v1 > x"", !r0(v1, x"6100"), x"00ff" < v1, r1(v1, v1).
h1(v2) <- r1(v1, v2).
"""

from fuzz.words import *

CASE = Case(kind='kept', tables=(Table(name='r0', types=('binary_view', 'fixed_size_binary[2]'), rows=((b'\x00\xff', None), (None, b'\xff\xfe'), (b'\xff\xfe', b'\x00\xff')), nulls=True, functional=True), Table(name='r1', types=('binary', 'fixed_size_binary[2]'), rows=(), nulls=True)), program=(Rule(heads=(Head(relation='h0', terms=(), value=Aggregate(function='max', arguments=(Variable(name='v1'),))),), body=(Atom(relation='r1', terms=(Variable(name='v1'), Variable(name='v1'))), Comparison(operator='>', left=Variable(name='v1'), right=Constant(value=b'')), Atom(relation='r0', terms=(Variable(name='v1'), Constant(value=b'a\x00')), negated=True), Comparison(operator='<', left=Constant(value=b'\x00\xff'), right=Variable(name='v1')), Atom(relation='r1', terms=(Variable(name='v1'), Variable(name='v1'))))), Rule(heads=(Head(relation='h1', terms=(Variable(name='v2'),)),), body=(Atom(relation='r1', terms=(Variable(name='v1'), Variable(name='v2'))),))), steps=(Commit(staged=(('r0', (None, b'a\x00'), 1), ('r1', (b'a', b'a\x00'), -2), ('r0', (None, b'\xff\xfe'), 1), ('r1', (b'\xff\xfe', b'\x00\xff'), -1), ('r0', (None, None), 1), ('r1', (b'\xff\xfe', b'\x00\xff'), 1), ('r1', (b'\xff\xfe', None), -1)), way='rows'), ApplyMany(transactions=((('r1', (None, b'\xff\xfe'), -2), ('r1', (b'\xff\xfe', b'a\x00'), 1), ('r1', (b'\xff\xfe', b'\xff\xfe'), -1)),))), options={'strategies': ('auto', 'delta'), 'others': ('auto', 'stages'), 'sensitivity_bytes': 400})

if __name__ == "__main__":
    repeat(CASE)
