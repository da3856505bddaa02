"""Timestamps were compared with a NULL among the members of `not in`: ArrowInvalid.

r0: timestamp[s], timestamp[s]; 2 rows, nulls='keep', bag=True

h0(kth_largest(v1, 1), v3, count(), count()) <- r0(v3, v3), r0(v1, v2), r0(v3, v1), v1 not in (2026-01-31T10:00:00, 1969-12-31T23:59:59, v2), v4 = v3.
"""

from fuzz.words import *

CASE = Case(kind='kept', tables=(Table(name='r0', types=('timestamp[s]', 'timestamp[s]'), rows=((datetime.datetime(1969, 12, 31, 23, 59, 59), datetime.datetime(2026, 1, 31, 10, 0)), (datetime.datetime(1969, 12, 31, 23, 59, 59), datetime.datetime(2026, 1, 31, 10, 0))), nulls=True, bag=True),), program=(Rule(heads=(Head(relation='h0', terms=(Aggregate(function='kth_largest', arguments=(Variable(name='v1'), Constant(value=1))), Variable(name='v3'), Aggregate(function='count'), Aggregate(function='count'))),), body=(Atom(relation='r0', terms=(Variable(name='v3'), Variable(name='v3'))), Atom(relation='r0', terms=(Variable(name='v1'), Variable(name='v2'))), Atom(relation='r0', terms=(Variable(name='v3'), Variable(name='v1'))), Comparison(operator='=', left=Call(function='in', arguments=(Variable(name='v1'), Constant(value=datetime.datetime(2026, 1, 31, 10, 0)), Constant(value=datetime.datetime(1969, 12, 31, 23, 59, 59)), Variable(name='v2'))), right=Constant(value=False)), Comparison(operator='=', left=Variable(name='v4'), right=Variable(name='v3')))),), steps=(Commit(staged=(('r0', (None, None), 1), ('r0', (None, datetime.datetime(1969, 12, 31, 23, 59, 59)), -1), ('r0', (None, datetime.datetime(2026, 1, 31, 10, 0)), 1), ('r0', (datetime.datetime(1969, 12, 31, 23, 59, 59), datetime.datetime(2026, 1, 31, 10, 0)), 1), ('r0', (datetime.datetime(1969, 12, 31, 23, 59, 59), None), -1), ('r0', (datetime.datetime(2026, 1, 31, 10, 0), datetime.datetime(1969, 12, 31, 23, 59, 59)), -1), ('r0', (datetime.datetime(2026, 1, 31, 10, 0), datetime.datetime(1969, 12, 31, 23, 59, 59)), -1), ('r0', (datetime.datetime(1969, 12, 31, 23, 59, 59), datetime.datetime(1969, 12, 31, 23, 59, 59)), -1)), way='tables'),), options={'strategies': ('auto',), 'others': ('auto',), 'merges': (0, 100), 'record_gap': 0})

if __name__ == "__main__":
    repeat(CASE)

