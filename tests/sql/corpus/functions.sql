-- name: arith
select a + b * 2 - 1 x, a % 2 m from e;

-- name: division
select a / b x, a // b y, b % a z, a / 4 w from e;

-- name: division by zero
select a / (b - 5) x, a // (b - 5) y, a % (b - 5) z from r;

-- name: whole division of doubles
select x // 2 a, x // q b, p // 3 c, divide(x, 0.5) d from m where q != 0;

-- name: decimals
select p + 1 a, p * 2.5 b, p - 0.005 c, -p d, p * p e, p > 1.5 f from m;

-- name: decimal equals a literal
select k from m where p = 0.00 or p = 1.50;

-- name: decimal division
select k, p / 3 d, p / q e from m;

-- name: doubles
select k, x * 2 a, x + q b, x / 3 c, x > 0.1 d from m;

-- name: casts
select cast(a as double) d, cast(a as decimal(8, 2)) m, cast(a as varchar) v, a::integer i from e;

-- name: casts of text
-- sqlite: has no dates
select cast('1' || a as bigint) i, '2026-01-0' || a x, cast('2026-01-0' || a as date) d, cast('1.5' as decimal(4, 2)) n from e;

-- name: casts that round
-- sqlite: truncates
select cast(p as bigint) i, cast(x as bigint) j, cast(p as decimal(12, 1)) d from m;

-- name: try_cast
select try_cast(g as bigint) i from m;

-- name: casts that fail
-- raises: Could not convert
select cast(g as bigint) i from m;

-- name: overflow
-- raises: Overflow
select a * 9223372036854775807 x from e;

-- name: rounding
select round(x) r, round(x, 1) r1, floor(x) f, ceil(x) c, trunc(x) t, round(p, 1) p1, floor(p) pf from m;

-- name: maths
select sqrt(a) s, exp(a) e, ln(a) l, log10(a) l10, power(a, 2) p, sign(a - 2) g, abs(a - 3) b, mod(a, 2) m, pi() pi from e;

-- name: trigonometry
select sin(a) s, cos(a) c, atan2(a, b) t from e;

-- name: bits
select a & b x, a | b y, xor(a, b) z, a << 2 s, b >> 1 t, ~a n from e;

-- name: bits, tested
select a, b from r where a & 1 = 1 and b >> a > 2 or ~b = -8;

-- name: bits of an integer
-- sqlite: shifts 64 bits
select cast(a as integer) >> cast(b + 30 as integer) x, -cast(a as integer) >> cast(b * 10 as integer) y from e;

-- name: dates
select d + interval 1 day x, extract(month from d) m from dt where d < date '2026-02-01';

-- name: months
select d + interval 1 month m, d - interval '1 year' y, d + 7 w, d - date '2026-01-01' n from dt;

-- name: interval columns
select k, day + to_days(q) x, day - to_months(q) y from m;

-- name: interval columns, multiplied
select k, moment + k * interval '1 month 2 days' x, day - interval 1 hour * q y, moment - to_minutes(q) z from m;

-- name: interval values
-- refused: to_days\(\)
select to_days(q) from m;

-- name: parts of dates
select year(day) y, month(day) m, day(day) d, quarter(day) q, dayofweek(day) w, dayofyear(day) n, week(day) k, extract(epoch from moment) e, hour(moment) h, minute(moment) mi, second(moment) s from m;

-- name: date_trunc
select date_trunc('month', day) m, date_trunc('hour', moment) h, count(*) n from m group by all;

-- name: date_diff
select date_diff('day', day, date '2026-03-01') d, date_diff('month', day, date '2026-03-01') m, datediff('hour', moment, timestamp '2026-01-03 00:00:00') h from m;

-- name: dates as text
-- sqlite: has no dates
select strftime(day, '%Y-%m') t, cast(day as varchar) v, cast(moment as date) d, cast(day as timestamp) s from m;

-- name: timestamps
select moment + interval 90 minute x, moment - interval '1 month 2 days' y from m;

-- name: timestamps, apart
-- refused: TIMESTAMP, TIMESTAMP.*date_diff
select moment - timestamp '2026-01-01 00:00:00' i from m;

-- name: date between
select k, day from m where day between date '2026-01-01' and date '2026-01-01' + interval '1 month';

-- name: time_bucket
-- sqlite: has no dates
select time_bucket(interval 7 day, day) d, time_bucket(interval 10 second, moment) m, time_bucket(interval '1 day 1 hour', moment, interval '-3 minutes') o, count(*) n from m group by all;

-- name: time_bucket of months
-- refused: time_bucket\(\).*date_trunc
select time_bucket(interval 1 month, day) d from m;

-- name: an interval join
-- sqlite: has no dates
select a.k, b.k from m a join m b on b.moment between a.moment - interval 1 hour and a.moment + interval '1 day 14 hours';

-- name: make_date
select make_date(2026, a, b) d, last_day(make_date(2026, a, b)) l from e;

-- name: today
-- refused: volatile
select count(*) n from dt where d < current_date;

-- name: random
-- sqlite: other random numbers
-- refused: volatile
select count(*) n from r where random() < 2;

-- name: string
select t || '!' x, upper(t) y from tx where t like 'a%';

-- name: strings
select lower(g) l, length(g) n, substring(g, 2, 2) s, left(g, 1) f, right(g, 1) r, trim('  ' || g || ' ') t, ltrim(' ' || g) lt, rtrim(g || ' ') rt, reverse(g) v, replace(g, 'a', 'A') p, position('b' in g) q, concat(g, '-', k) c from m;

-- name: strings, padded and repeated
select lpad(g, 5, '*') l, rpad(g, 5, '*') r, repeat(g, 2) t, concat_ws(',', g, k) w, chr(65 + cast(k as integer)) c, ascii(g) a from m;

-- name: like
select t from tx where t like '%b%' or t not like '_y_';

-- name: like with escape
select g from m where g like '%a\_%' escape '\' or g like '%!%%' escape '!';

-- name: ilike
select g from m where g ilike 'A%' or g similar to 'b.*';

-- name: like a column
select x.t, y.t u from tx x, tx y where x.t like y.t || '%';

-- name: prefixes
select g, starts_with(g, 'a') s, contains(g, 'b') c, suffix(g, 'c') e, g[1] f from m;

-- name: regular expressions
select g, regexp_matches(g, '^a.*c$') m, regexp_replace(g, '[aeiou]', '*') r, regexp_extract(g, '([a-z])', 1) e from m;

-- name: split
select split_part(g, 'b', 1) s from m;

-- name: split from the end
select split_part(g, 'b', -1) s, split_part(g, 'b', 0) n, split_part(g, g, k) o, string_split(g, 'b')[2] p from m;

-- name: split into rows
select g, unnest(string_split(g, 'b')) u from m;

-- name: parts counted
select g, len(string_split(g, 'b')) n from m;

-- name: concatenation skips nulls
select concat(t, '-', nullif(t, 'a')) c, concat_ws('/', t, nullif(t, 'a'), t || '{1}', null) w, concat_ws(null, t) o, concat(null, t) p, concat_ws(nullif(t, 'a'), t, t) n from tx;

-- name: characters
select g[1] a, g[-1] b, g[0] c, g[k] d, chr(cast(64 + k as integer)) e, reverse(g || 'x') f from m;

-- name: strings compared
select x.g, y.g h from m x, m y where x.g < y.g and x.k = y.k;

-- name: hashes
-- refused: md5
select md5(g) h from m;

-- name: structs
-- refused: struct
select {'a': a, 'b': b} s from e;

-- name: lists
-- refused: list
select [a, b] l from e;

-- name: list functions
-- refused: list_aggr\(\).*unnest
select list_sum([a, b]) s, len([a, b]) n, list_contains([a, 2], b) c from e;

-- name: lambda
-- refused: lambda
select list_transform([a, b], lambda x : x + 1) l from e;

-- name: collation
-- refused: collat
select t from tx order by t collate nocase;

-- name: constants folded
select 1 + 2 three, 'a' || 'b' ab, date '2026-01-31' + interval 1 month d, a from e where 1 < 2;

-- name: false
select a from r where 1 > 2;

-- name: aliases and stars
select *, a as "A b", r.* exclude (a) from r;

-- name: star replaced
select * replace (a + 1 as a) from e;

-- name: columns expression
select max(columns(*)) from e;

-- name: integers of all widths
select cast(a as tinyint) t, cast(a as smallint) s, cast(a as integer) i, cast(a as hugeint) h, cast(a as ubigint) u from e;

-- name: hugeint
-- departs: does not fit type int64
select cast(b as hugeint) * 1000000000000000000 * 1000 h from e;

-- name: groups by row numbers of a table
-- refused: rowid
select a from r group by a, rowid;

-- name: row numbers of a table
-- sqlite: counts rows from 1
-- refused: rowid
select rowid, a from e;

-- name: functions of a decimal that is one value
select k, abs(c) * q x, abs(c + c) y, greatest(c, 0.5) z, -c w, round(c, 1) v from (select k, q, 1.55 c from m) z;

-- name: functions of a decimal that is one value or null
select e.a, abs(z.c) x, abs(z.c) + 1 y, case when e.b > 2 then z.c else 1.5 end v from e left join (select k, 1.55 c from m) z on e.a = z.k + 1;

-- name: functions of a decimal that is one value beside others
select abs(c) v from (select 1.50 c from m) z union select p from m;

-- name: functions of a decimal that is one value among others
select k from (select k, 1.50 c from m) z where abs(c) in (select p from m) and abs(c) not in (select salary from emp where salary is not null);

-- name: hours of a date
select day, hour(day) h, extract(second from day) s, date_part('minute', day) u from m;

-- name: options of a regular expression
select g, regexp_matches(g, 'A', 'i') x, regexp_replace(g, 'A|B', '-', 'gi') y, regexp_extract(g, 'A(B)', 1, 'i') z
from m;

-- name: without options of a regular expression
select g from m where not regexp_matches(g, 'A', 'c');

-- name: options that no rule has
-- refused: options of a regular expression
select g from m where regexp_matches(g, 'a.b', 's');

-- name: formats for short
-- sqlite: it has none of them
select strftime(moment, '%c|%x|%X|%h|%z|%%c') s from m;

-- name: a unit that is a column
-- refused: the function date_trunc\(\)
select date_trunc(case when k > 1 then 'day' else 'month' end, moment) d from m;

-- name: len of a text
select g, len(g) n, length(g) m, len(string_split(g, 'b')) k from m;

-- name: a list as a text
-- refused: a cast of VARCHAR\[\]
select string_split(g, 'b')::varchar s from m;

-- name: a position of nothing in a list
-- refused: the function list_position\(\)
select list_position([a, null], null) n from r;

-- name: decimals of all digits
select p + 12345678901234567890.5 s, 0.1234567890123456789 * p t, 922337203685477580::bigint::decimal(18, 0) u from m;

-- name: constants of many digits
-- sqlite: it has doubles
select 12345678901234567890.5 x, '9.90000000000000000'::decimal(18, 17)::decimal(17, 16) y, 100::decimal(38, 35) z;

-- name: a series as a list
select unnest(range(3)) n, unnest(generate_series(2, 4)) k;

-- name: elements of a text of a list
select unnest('[3, 4]'::integer[]) n;

-- name: a value with parts
-- refused: a value of type STRUCT
select {'a': a, 'b': b} s from r;

-- name: a map
-- refused: a value of type MAP
select map([1], [2]) m from r;

-- name: the year that it is
-- refused: the volatile today\(\)
select k from m where extract(year from day) < extract(year from today());

-- name: the century that it is
-- refused: the volatile now\(\)
select extract(century from now()) c;

-- name: of cases that are NULL
select a, case when b > 1 then null when a > 1 then null end x, case when b > 5 then 1 when a > 1 then null end y
from r;

-- name: cases of nothing among numbers
select 16 * case when max(a) + 1 > nullif(sum(b), 6) then 51 when 48 * -a > 0 then null when a > 2 then null end x
from r group by a;

-- name: the last day that there is
select k, day from m where day < date '9999-12-31';

-- name: a day without end
-- refused: at infinity
select k, day from m where day < date 'infinity';

-- name: codes of no sign
select g, unicode(g) u, ord(g) o, ascii(g) a from m;

-- name: a time of the day
-- refused: of type TIME
select k, time '10:00' t from m;

-- name: a date of a number of days
-- refused: the function make_date\(\) of INTEGER
select make_date(a::integer) d from r;

-- name: casts of a decimal that is one value
-- sqlite: has doubles
select e.a, cast(z.c as integer) i, cast(z.c as varchar) t, cast(z.c as double) x, cast(z.c as decimal(4, 1)) d, abs(z.c * -3) v from e left join (select k, 2.50 c from m) z on e.a = z.k + 1;

-- name: decimals of many digits
select a + 12345678901234567890123456789012.34 x, abs(c) y, cast(a as decimal(38, 30)) z, cast(9 as decimal(38, 30)) n from e, (select 12345678901234567890123456.34 c) q;

-- name: whole division of what has a fraction
select a // 2.5 x, z.x // 2 y, p // q v from e, m z where a = k and q <> 0;

-- name: as many digits as a column says
-- refused: the function round\(\)
-- sqlite: it takes no number of digits below 0
select round(x, q) y from m;

-- name: row numbers in name and text alone
select count(*) as rowid from e where 'rowid' <> 'x';
