-- name: empty aggregate
select count(*), sum(b), min(a) from r where a > 100;

-- name: empty groups
select a, count(*) from r where a > 100 group by a;

-- name: null aggregate
select a, sum(b), count(b), count(*), avg(b) from r group by a;

-- name: group by null
select b, count(*) from r group by b;

-- name: having
select a, sum(b) s from r group by a having count(*) > 1 or sum(b) > 10;

-- name: having without groups
select sum(b) s from r having count(*) > 3;

-- name: having without groups, none
select sum(b) s from r having count(*) > 300;

-- name: distinct
select distinct b from r;

-- name: distinct of an expression
select distinct b % 10 m, b is null n from r;

-- name: count distinct
select a, count(distinct b) n, sum(b) s from r group by a;

-- name: sum distinct
select sum(distinct b) from r;

-- name: distinct aggregates over nothing
select count(distinct b), sum(distinct b), avg(distinct b) from r where a > 100;

-- name: sum case
select sum(case when b > 10 then 1 else 0 end) n from r;

-- name: nested agg
select max(n) from (select a, count(*) n from r group by a) q;

-- name: group by expr
select a % 2 k, sum(b) from e group by k;

-- name: group by all
select a % 2 k, b, count(*) n from r group by all;

-- name: aggregate of a product
select sum(r.b * s.d) from r, s where r.a = s.c;

-- name: aggregates over aggregates
select a, sum(b) * 2 + count(*) x, max(b) - min(b) y from r group by a;

-- name: min and max of all types
select min(g), max(g), min(p), max(p), min(x), max(x), min(f), max(f), min(day), max(day), min(moment), max(moment) from m;

-- name: sums of all types
select k, sum(p), sum(q), sum(x), avg(p), avg(q), avg(x), count(g) from m group by k;

-- name: filter
select a, count(*) filter (where b > 10) n, sum(b) filter (where b is not null and a < 4) s from r group by a;

-- name: filter of nothing
select sum(b) filter (where a > 100) s, count(*) filter (where a > 100) n from r;

-- name: distinct with filter
select count(distinct b) filter (where a < 4) n from r;

-- name: bool_and, bool_or
select k, bool_and(f), bool_or(f), bool_or(p > 2) from m group by k;

-- name: any of equal values
select a, any_value(a + 1) v from e group by a;

-- name: deviations
select stddev_samp(b), stddev_pop(b), var_samp(b), var_pop(b) from r;

-- name: deviations by group
select a, stddev(b) s, variance(b) v from r group by a;

-- name: covariance
-- refused: corr\(\).*var_pop
select corr(a, b), covar_pop(a, b), covar_samp(a, b), regr_slope(a, b) from r;

-- name: median
select median(b), median(a) from r;

-- name: quantiles
select quantile_disc(b, 0.25), quantile_cont(b, 0.5) m from r;

-- name: quantile between two values
-- refused: quantile_cont\(\).*quantile_disc
select quantile_cont(b, 0.75) from r;

-- name: within group
select percentile_disc(0.5) within group (order by b) p from r;

-- name: arg_min and arg_max
select arg_max(a, b * 10 + a) x, arg_min(a, b * 10 + a) y from e;

-- name: string_agg ordered
select k, string_agg(g, ',' order by g) t from m group by k;

-- name: string_agg distinct
select string_agg(distinct g, '/' order by g) t from m;

-- name: list ordered
select a, list(b order by b) l from r group by a;

-- name: mode of one
select a, mode(a) v from e group by a;

-- name: product
-- refused: product\(\).*sum\(ln
select product(b) from e;

-- name: bit aggregates
-- refused: bit_and\(\)
select bit_and(a), bit_or(a), bit_xor(a) from e;

-- name: count_if
select count_if(b > 10), sum(if(b > 10, a, 0)) from r;

-- name: kurtosis
-- refused: kurtosis
select kurtosis(b) from r;

-- name: approximate count
-- refused: approx_count_distinct
select approx_count_distinct(b) from r;

-- name: rollup
select a, b, count(*) from r group by rollup(a, b);

-- name: cube
select a, b, sum(b) s, count(*) n from r group by cube(a, b);

-- name: grouping sets
select a, b, count(*) n from r group by grouping sets ((a), (b), (a, b));

-- name: grouping sets of nothing
select a, count(*) n from r where a > 100 group by grouping sets ((a), ());

-- name: grouping
select a, b, grouping(a) ga, grouping(a, b) gab, sum(b) s from r group by rollup(a, b) having grouping(a) = 0 or count(*) > 3;

-- name: empty grouping set twice
select count(*) n from r group by grouping sets ((), ());

-- name: group by a constant
select 1 one, count(*) n from r group by one;

-- name: pivot
select * from (pivot r on b in (10, 20) using count(*) group by a);

-- name: unpivot
select * from (unpivot (select a, b from r) on a, b);

-- name: avg union all
select avg(x) from (select a x from e union all select b from e) q;

-- name: group by a boolean
select b > 10 big, count(*) n, min(a) from r group by big;

-- name: group by text, date and decimal
select g, day, p, count(*) n from m group by g, day, p;

-- name: having distinct
select a from r group by a having count(distinct b) > 1;

-- name: sum of decimals
select sum(p * (1 - p)) s, sum(p) * 0.5 h, avg(p * 2) a from m;

-- name: huge sum
-- departs: does not fit int64
select sum(b + 9223372036854775000) h from e;

-- name: alternatives, groups by what decides whether there is a partner
select r.a, count(*) n, count(s.d) m, sum(s.d) t, min(s.d) lo, max(s.d) hi, bool_or(s.d > 10) f, count(r.b) k
from r left join s on r.a = s.c group by r.a;

-- name: alternatives, groups by the inner side
select s.d, count(*) n, sum(r.b) t, count(r.b) m from r left join s on r.a = s.c group by s.d;

-- name: alternatives, groups by another column of the outer side
select r.b, count(s.d) n, sum(s.d) t, max(r.a) hi from r left join s on r.a = s.c and s.d > r.b group by r.b;

-- name: alternatives, totals
select count(*) n, count(s.d) m, sum(s.d) t, max(r.b) hi from r left join s on r.a = s.c;

-- name: alternatives, totals of nothing
select count(*) n, count(s.d) m, sum(s.d) t, max(r.b) hi from r left join s on r.a = s.c where s.d > 1000 or r.b > 1000;

-- name: alternatives, totals without parts
select avg(s.d) a, count(distinct s.d) n, count(*) m from r left join s on r.a = s.c;

-- name: alternatives, a full join
select coalesce(r.a, s.c) k, count(*) n, sum(r.b) t, min(s.d) lo from r full join s on r.a = s.c group by 1;

-- name: alternatives, a union
select k, sum(v) t, count(*) n, count(v) m, min(v) lo from (select a k, b v from r union all select c, d from s) group by k;

-- name: alternatives, grouping sets
select r.a, r.b, count(s.d) n, sum(s.d) t from r left join s on r.a = s.c group by grouping sets ((r.a), (r.b), ());

-- name: alternatives, two outer joins
select r.a, count(s.d) n, count(e.b) m, sum(e.b) t from r left join s on r.a = s.c left join e on e.a = r.a group by r.a;

-- name: alternatives, two outer joins in a row
-- sqlite: divides integers
select r.a, count(s.d) n, count(e.b) m, sum(e.b) t from r left join s on r.a = s.c left join e on e.a = s.d / 10 group by r.a;

-- name: alternatives, a test behind the join
select r.a, count(s.d) n, count(*) m from r left join s on r.a = s.c where s.d is null or s.d > 10 group by r.a;

-- name: aggregates of nothing over an outer join
select avg(distinct d) filter (where a is null and a > 1) x, string_agg(cast(d as varchar), ',' order by d) filter (where 1 > 2) y from r left join s on a = c;

-- name: aggregates of a text of nothing
select min(m) lo, max(m) hi, count(m) n, count(*) k from (select string_agg(distinct t, ',' order by t) m from tx where t > 'zz') z;

-- name: aggregates of an aggregate of nothing
select m, max(m) o, sum(m) t, count(m) n from (select max(a) m from e where a > 99) z group by m;

-- name: groups beside an aggregate of nothing
select b, max(m) o, count(*) n from e, (select max(t) m from tx where t > 'zz') z group by b;

-- name: alternatives, texts in one order
select k, string_agg(t, ',' order by t) x, string_agg(t, '' order by t) y, count(*) n from (select x.k, y.g t from m x left join m y on x.q = y.k) z group by k;

-- name: grouping sets of nothing twice
select count(*) n, sum(a) s from r group by grouping sets ((), ());

-- name: grouping sets of nothing twice over nothing
select count(*) n, sum(a) s from r where false group by grouping sets ((), ());

-- name: a row for each empty grouping set
select count(*) n group by grouping sets ((), (), ());

-- name: an order that does not matter
select k, sum(q order by x desc) s, max(p order by x) m, count(q order by p) n from m group by k;

-- name: the first in an order
-- refused: ORDER BY of first\(\)
select k, first(q order by x) f from m group by k;

-- name: texts in two orders
-- sqlite: another one takes no two
select string_agg(g, ',' order by g desc) x, string_agg(g, ',' order by g) y from m;

-- name: a separator that is NULL
-- refused: string_agg\(\) by what is no literal
select string_agg(g, null) s from m;

-- name: distinct pairs
-- refused: arg_min\(DISTINCT\)
select arg_min(distinct a, b) x from r;

-- name: the state of an aggregate
-- refused: a value of type AGGREGATE_STATE
select finalize(sum(k) export_state) s from m;

-- name: distinct values about, of nothing
-- refused: the aggregate approx_count_distinct\(\)
select approx_count_distinct(a) n from r where 1 = 0;

-- name: the least two
-- sqlite: of each row
-- refused: min\(\) of so many rows
select min(a, 2) x from r;

-- name: the day in the middle
-- refused: median\(\) of DATE
select median(day) d from m;

-- name: a share from above
-- refused: the share -0.25
select percentile_disc(0.25) within group (order by a desc) x from r;

-- name: a constant that is counted over no table
select count(8) n, count(-3) + 46 m;

-- name: a filter of one row
select count(*) filter (where 1 = 0) n, count(*) m;

-- name: filter over the only row
select count(*) filter (where t > 1000) as n, count(*) as m, first(t) filter (where t > 1000) as f
from (select sum(b) as t from r);

-- name: texts in several orders
select k, string_agg(g, ',' order by g) x, string_agg(g, ',' order by q desc, g, x) y, sum(q) t from m group by k;

-- name: texts and lists in several orders of all rows
select string_agg(g, ',' order by g) x, list(q order by q desc, g, x) y, string_agg(distinct g, '/' order by g) z from m;

-- name: count of one row that reads nothing
select count(x.c) n, -2 m from (select y.c from (values (1)) y(c)) x;

-- name: aggregates of one row that reads nothing
select count(*) n, count(distinct c) d, min(c) l, sum(c) s from (select y.c from (values (1)) y(c)) x;

-- name: count of one row that reads nothing, by a group
select c, count(*) n from (select y.c from (values (1)) y(c)) x group by c;

-- name: a row of constants with a number
select row_number() over () n, c from (select y.c from (values (1)) y(c)) x;

-- name: count of one row that reads nothing, beside rows
select r.a, (select count(x.c) from (select y.c from (values (1)) y(c)) x) n from r;
