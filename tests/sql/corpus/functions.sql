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

-- name: time_bucket from an origin
-- sqlite: has no dates
select time_bucket(interval 7 day, day, date '2001-01-01') d, time_bucket(interval 10 second, moment, timestamp '2030-05-06 07:08:09.5') m from m;

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

-- name: logarithms to a base
select log(2, k) x, log(k + 1, 8) y from m;

-- name: arithmetic of REAL
select k, x::real + 1 = 1.1::real a, (x::real * x::real)::double b, (x::real / 3)::varchar c, x::real + 100000000 d from m;

-- name: distinct values of REAL
select count(distinct x::real + 100000000) n, sum(x::real * 0.1::real) s from m;

-- name: a decimal of many digits times a whole number
select big * 2 x, 3 * big y from (select 1234567890123456789012345678.0123456789::decimal(38, 10) + k big from m);

-- name: the middle of decimals
-- refused: median\(\) of DECIMAL.*quantile_disc
select median(p) from m;

-- name: a CASE of many branches
-- refused: a CASE of so many branches
select case when k = 0 then 0 when k = 1 then 1 when k = 2 then 2 when k = 3 then 3 when k = 4 then 4 when k = 5 then 5 when k = 6 then 6 when k = 7 then 7 when k = 8 then 8 when k = 9 then 9 when k = 10 then 10 when k = 11 then 11 when k = 12 then 12 when k = 13 then 13 when k = 14 then 14 when k = 15 then 15 when k = 16 then 16 when k = 17 then 17 when k = 18 then 18 when k = 19 then 19 when k = 20 then 20 when k = 21 then 21 when k = 22 then 22 when k = 23 then 23 when k = 24 then 24 when k = 25 then 25 when k = 26 then 26 when k = 27 then 27 when k = 28 then 28 when k = 29 then 29 when k = 30 then 30 when k = 31 then 31 when k = 32 then 32 when k = 33 then 33 when k = 34 then 34 when k = 35 then 35 when k = 36 then 36 when k = 37 then 37 when k = 38 then 38 when k = 39 then 39 when k = 40 then 40 when k = 41 then 41 when k = 42 then 42 when k = 43 then 43 when k = 44 then 44 when k = 45 then 45 when k = 46 then 46 when k = 47 then 47 when k = 48 then 48 when k = 49 then 49 when k = 50 then 50 when k = 51 then 51 when k = 52 then 52 when k = 53 then 53 when k = 54 then 54 when k = 55 then 55 when k = 56 then 56 when k = 57 then 57 when k = 58 then 58 when k = 59 then 59 when k = 60 then 60 when k = 61 then 61 when k = 62 then 62 when k = 63 then 63 when k = 64 then 64 when k = 65 then 65 when k = 66 then 66 when k = 67 then 67 when k = 68 then 68 when k = 69 then 69 when k = 70 then 70 when k = 71 then 71 when k = 72 then 72 when k = 73 then 73 when k = 74 then 74 when k = 75 then 75 when k = 76 then 76 when k = 77 then 77 when k = 78 then 78 when k = 79 then 79 when k = 80 then 80 when k = 81 then 81 when k = 82 then 82 when k = 83 then 83 when k = 84 then 84 when k = 85 then 85 when k = 86 then 86 when k = 87 then 87 when k = 88 then 88 when k = 89 then 89 end v from m;

-- name: many alternatives
select a from e where (a = 0 and b = 1) or (a = 1 and b = 2) or (a = 2 and b = 3) or (a = 3 and b = 4) or (a = 4 and b = 5) or (a = 5 and b = 6) or (a = 6 and b = 7) or (a = 7 and b = 8) or (a = 8 and b = 9) or (a = 9 and b = 10) or (a = 10 and b = 11) or (a = 11 and b = 12) or (a = 12 and b = 13) or (a = 13 and b = 14) or (a = 14 and b = 15) or (a = 15 and b = 16) or (a = 16 and b = 17) or (a = 17 and b = 18) or (a = 18 and b = 19) or (a = 19 and b = 20) or (a = 20 and b = 21) or (a = 21 and b = 22) or (a = 22 and b = 23) or (a = 23 and b = 24) or (a = 24 and b = 25) or (a = 25 and b = 26) or (a = 26 and b = 27) or (a = 27 and b = 28) or (a = 28 and b = 29) or (a = 29 and b = 30) or (a = 30 and b = 31) or (a = 31 and b = 32) or (a = 32 and b = 33) or (a = 33 and b = 34) or (a = 34 and b = 35) or (a = 35 and b = 36) or (a = 36 and b = 37) or (a = 37 and b = 38) or (a = 38 and b = 39) or (a = 39 and b = 40) or (a = 40 and b = 41) or (a = 41 and b = 42) or (a = 42 and b = 43) or (a = 43 and b = 44) or (a = 44 and b = 45) or (a = 45 and b = 46) or (a = 46 and b = 47) or (a = 47 and b = 48) or (a = 48 and b = 49) or (a = 49 and b = 50) or (a = 50 and b = 51) or (a = 51 and b = 52) or (a = 52 and b = 53) or (a = 53 and b = 54) or (a = 54 and b = 55) or (a = 55 and b = 56) or (a = 56 and b = 57) or (a = 57 and b = 58) or (a = 58 and b = 59) or (a = 59 and b = 60) or (a = 60 and b = 61) or (a = 61 and b = 62) or (a = 62 and b = 63) or (a = 63 and b = 64) or (a = 64 and b = 65) or (a = 65 and b = 66) or (a = 66 and b = 67) or (a = 67 and b = 68) or (a = 68 and b = 69) or (a = 69 and b = 70) or (a = 70 and b = 71) or (a = 71 and b = 72) or (a = 72 and b = 73) or (a = 73 and b = 74) or (a = 74 and b = 75) or (a = 75 and b = 76) or (a = 76 and b = 77) or (a = 77 and b = 78) or (a = 78 and b = 79) or (a = 79 and b = 80) or (a = 80 and b = 81) or (a = 81 and b = 82) or (a = 82 and b = 83) or (a = 83 and b = 84) or (a = 84 and b = 85) or (a = 85 and b = 86) or (a = 86 and b = 87) or (a = 87 and b = 88) or (a = 88 and b = 89) or (a = 89 and b = 90) or (a = 90 and b = 91) or (a = 91 and b = 92) or (a = 92 and b = 93) or (a = 93 and b = 94) or (a = 94 and b = 95) or (a = 95 and b = 96) or (a = 96 and b = 97) or (a = 97 and b = 98) or (a = 98 and b = 99) or (a = 99 and b = 100) or (a = 100 and b = 101) or (a = 101 and b = 102) or (a = 102 and b = 103) or (a = 103 and b = 104) or (a = 104 and b = 105) or (a = 105 and b = 106) or (a = 106 and b = 107) or (a = 107 and b = 108) or (a = 108 and b = 109) or (a = 109 and b = 110) or (a = 110 and b = 111) or (a = 111 and b = 112) or (a = 112 and b = 113) or (a = 113 and b = 114) or (a = 114 and b = 115) or (a = 115 and b = 116) or (a = 116 and b = 117) or (a = 117 and b = 118) or (a = 118 and b = 119) or (a = 119 and b = 120);

-- name: a chain of CASE
with c0 as (select a x from r), c1 as (select case when x > 5 then x - 1 else x + 2 end x from c0), c2 as (select case when x > 5 then x - 1 else x + 2 end x from c1), c3 as (select case when x > 5 then x - 1 else x + 2 end x from c2), c4 as (select case when x > 5 then x - 1 else x + 2 end x from c3), c5 as (select case when x > 5 then x - 1 else x + 2 end x from c4), c6 as (select case when x > 5 then x - 1 else x + 2 end x from c5), c7 as (select case when x > 5 then x - 1 else x + 2 end x from c6), c8 as (select case when x > 5 then x - 1 else x + 2 end x from c7) select x, count(*) n from c8 group by x;

-- name: a chain of sums, filtered and joined
with c0 as (select a x, b from r), c1 as (select (x + x) % 97 x, b from c0), c2 as (select (x + x) % 97 x, b from c1), c3 as (select (x + x) % 97 x, b from c2), c4 as (select (x + x) % 97 x, b from c3), c5 as (select (x + x) % 97 x, b from c4), c6 as (select (x + x) % 97 x, b from c5), c7 as (select (x + x) % 97 x, b from c6), c8 as (select (x + x) % 97 x, b from c7) select c8.x, s.d from c8 left join s on c8.x = s.c where c8.x is null or c8.x < 50;

-- name: a chain of texts
with c0 as (select g x from m), c1 as (select coalesce(nullif(trim(x), ''), 'none') x from c0), c2 as (select coalesce(nullif(trim(x), ''), 'none') x from c1), c3 as (select coalesce(nullif(trim(x), ''), 'none') x from c2), c4 as (select coalesce(nullif(trim(x), ''), 'none') x from c3) select distinct x from c4;

-- name: COALESCE in COALESCE
select coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(coalesce(null, a), a), a), a), a), a), a), a), a), a), a), a), a), a), a), a), a), a), a), a), a), a), a), a), a), a), a), a), a), a) v, coalesce(a, coalesce(b, coalesce(null, 7))) w from r;

-- name: many EXISTS as columns
select a, exists (select 1 from s where c = r.a + 0) f0, exists (select 1 from s where c = r.a + 1) f1, exists (select 1 from s where c = r.a + 2) f2, exists (select 1 from s where c = r.a + 3) f3, exists (select 1 from s where c = r.a + 4) f4, exists (select 1 from s where c = r.a + 5) f5, exists (select 1 from s where c = r.a + 6) f6 from r;

-- name: many IN as columns
select a, b in (select d + 0 from s) f0, b in (select d + 1 from s) f1, b in (select d + 2 from s) f2, b in (select d + 3 from s) f3, b in (select d + 4 from s) f4, b in (select d + 5 from s) f5 from r;

-- name: many EXISTS under OR
select a from r where (a = 0 or exists (select 1 from s where c = r.a - 0)) and (a = 1 or exists (select 1 from s where c = r.a - 1)) and (a = 2 or exists (select 1 from s where c = r.a - 2)) and (a = 3 or exists (select 1 from s where c = r.a - 3)) and (a = 4 or exists (select 1 from s where c = r.a - 4)) and (a = 5 or exists (select 1 from s where c = r.a - 5));

-- name: more parts of moments
select extract(millisecond from moment) a, microsecond(moment) b, millisecond(day) c, weekofyear(day) d, dayname(day) e, monthname(moment) f from m;

-- name: moments as numbers
select epoch_ms(moment) a, epoch_us(moment) b, epoch_ns(moment) c, epoch_ms(day) d from m;

-- name: rows among rows
-- sqlite: NULL in rows
select a, b from r where (a, b) in ((1, 10), (4, 20), (null, 10)) or (a, b, 1) not in ((2, 20, 1), (3, null, 1));

-- name: rows in an order
-- ordered
-- sqlite: NULL in rows
select a, b from r where (a, b) < (3, 15) or (b, cast(a as double)) >= (20, 1.5) order by a, b;

-- name: rows compared with rows
-- sqlite: NULL in rows
select r.a, r.b, c, d, (a, b) < (c, d) l, (a, b) <= (c, d) le, (a, b) > (c, d) g, (a, b) >= (c, d) ge, (a, b) = (c, d) e, (a, b) <> (c, d) n, (a, b) is distinct from (c, d) f, (a, b) is not distinct from (c, d) h from r, s;

-- name: rows of three joined
-- sqlite: NULL in rows
select x.k, y.k from m x join m y on (x.k, x.g, x.p) = (y.k, y.g, y.p);

-- name: a row of a row
-- refused: TUPLE
select a from r where ((a, b), a) = ((1, 2), 3);

-- name: a row as a value
-- refused: TUPLE
select (a, b) t from r;
