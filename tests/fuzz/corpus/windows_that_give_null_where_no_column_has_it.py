"""NULL that a window gives, where no loaded column of the domain has one, was decoded as a value.

r0: time64[us], int64, time64[us]; 1 rows
r2: time64[us], time64[us]; 1 rows

h0(v7) <- coalesce(v4, v4) = v6, r2(v1, v2), r0(v3, v4, v5), v7 = lag(v2, by: (v5 desc, v4 desc nulls first, v2, v6 desc, v3), per: (v1)).
"""

from fuzz.words import *

CASE = Case(kind='once', tables=(Table(name='r0', types=('time64[us]', 'int64', 'time64[us]'), rows=((datetime.time(0, 0), 2, datetime.time(23, 59)),)), Table(name='r2', types=('time64[us]', 'time64[us]'), rows=((datetime.time(23, 59), datetime.time(23, 59)),))), program=(Rule(heads=(Head(relation='h0', terms=(Variable(name='v7'),)),), body=(Comparison(operator='=', left=Call(function='coalesce', arguments=(Variable(name='v4'), Variable(name='v4'))), right=Variable(name='v6')), Atom(relation='r2', terms=(Variable(name='v1'), Variable(name='v2'))), Atom(relation='r0', terms=(Variable(name='v3'), Variable(name='v4'), Variable(name='v5'))), Windowed(target=Variable(name='v7', null_safe=False), function='lag', arguments=(Variable(name='v2', null_safe=False),), per=('v1',), by=(Order(name='v5', descending=True, nulls_first=False), Order(name='v4', descending=True, nulls_first=True), Order(name='v2', descending=False, nulls_first=False), Order(name='v6', descending=True, nulls_first=False), Order(name='v3', descending=False, nulls_first=False)), frame=None))),))

if __name__ == "__main__":
    repeat(CASE)
