-- name: union all
select a from r union all select c from s;

-- name: union
select a from r union select c from s;

-- name: union of types
select a from e union all select p from m;

-- name: union by name
select a, b from e union all by name select d a, c b from s;

-- name: union of three
select a from r union all select c from s union select b from e;

-- name: except
select a from e except select b from e;

-- name: except of nulls
select a, b from r except select c, d from s;

-- name: except all
select b from r except all select d from s;

-- name: except all of its half
select a, b from r except all select distinct a, b from r;

-- name: intersect
select a from e intersect select b from e;

-- name: intersect of nulls
select a, b from r intersect select c, d from s;

-- name: intersect all
select b from r intersect all select d from s;

-- name: set operations nested
(select a from r union all select a from r) except all (select c from s intersect all select a from e);

-- name: union of groups
select a, count(*) n from r group by a union all select c, sum(d) from s group by c;

-- name: distinct over union all
select distinct x from (select b x from r union all select d from s) q;

-- name: count over union all
select x, count(*) n from (select b x from r union all select d from s) q group by x;

-- name: union all joined
select q.x, e.b from (select a x from r union all select c from s) q join e on e.a = q.x;

-- name: set operation with order and limit
-- ordered
select a from e union select d from s order by a nulls last limit 4;

-- name: values
values (1, 'a'), (2, null), (2, null);

-- name: values joined
select e.a, v.n from e join (values (1, 'one'), (2, 'two'), (2, 'zwei')) v(k, n) on v.k = e.a;

-- name: values in a subquery
select a from r where (a, b) in (values (1, 10), (4, 20));

-- name: unnest of a list
select a, unnest([1, 2, 2]) u from e;

-- name: unnest in from
select a, u from e, unnest([a, b, null]) t(u);

-- name: unnest of a range
select a, u from e, unnest(range(a)) t(u);

-- name: range
select i, a from range(1, 4) t(i) left join e on e.a = i;

-- name: a long range
select count(*) n from range(100000) t(i);

-- name: range twice
select i, j from range(4) t(i), range(0, 6, 2) u(j) where i = j;

-- name: rows of a range counted
select count(*) n from range(3) t(i), e;

-- name: unnest a constant list
select u, a from unnest([3, 1, null, 2]) t(u) left join e on a = u;

-- name: unnest, correlated
select a, (select max(u) from unnest([a, b]) t(u)) m from r where exists (select 1 from unnest([b, 5, 10]) t(u) where u = r.a + 6);

-- name: unnest, left
select e.a, x.u from e left join lateral unnest([e.a, e.b]) x(u) on x.u > 2;

-- name: a range downwards
select i, (select count(*) from r where a = i) n from range(5, 0, -2) t(i);

-- name: a range of days
select d, i from dt join range(date '2026-01-30', date '2026-02-05', interval 1 day) t(i) on d = i;

-- name: a range of each row
select r.a, x from r, range(r.a) t(x) where x <> 1;

-- name: a series of each row, left
select r.a, x from r left join lateral generate_series(2, r.a) t(x) on true;

-- name: a series downwards with its end
select x from generate_series(5, 1, -2) t(x);

-- name: ranges of each row side by side
select a, unnest(range(a)) x, unnest(generate_series(3, a)) y from r;

-- name: numbers of a range of each row summed
select a, (select sum(x) from range(a) t(x)) s, range(a, 5) l from r;

-- name: a range of NULL
select x from range(null) t(x);

-- name: hours of each day
select d, x from dt, generate_series(d::timestamp, d + interval 1 day, interval 6 hour) t(x) where x > d;

-- name: hours backwards
select d, x from dt, generate_series(d + interval 1 day, d::timestamp, interval (-7) hour) t(x);

-- name: more moments than a list of values has
select count(*) n, max(x) last from range(timestamp '2026-01-01', timestamp '2026-03-01', interval 5 minute) t(x);

-- name: months of each day
-- refused: generate_series\(\).*without months
select d, x from dt, generate_series(d::timestamp, d + interval 1 year, interval 1 month) t(x);

-- name: months between two days
select x from generate_series(timestamp '2026-01-31', timestamp '2026-06-30', interval 1 month) t(x);

-- name: a range in a recursion
with recursive t(n) as (select 1 union all select n + x from t join range(1, 4) r(x) on x <= n where n < 6) select * from t;

-- name: elements in a recursion
with recursive t(k, l) as (select a, string_split(g, '_') from e join m on k = a union all select k + 1, string_split(u, 'c') from (select k, unnest(l) u from t) where k < 4) select k, len(l) n from t;

-- name: unnest two lists
select a, unnest([a, b]) u, unnest(['x', 'y', 'z']) v from e;

-- name: unnest an empty list
select a, unnest([]) u from e;

-- name: generate_series
select i, count(a) n from generate_series(1, 5) t(i) left join r on r.a = i group by i;

-- name: union all of three
-- ordered
select a, 'e' t from e union all select c, 's' from s union all select a, 'r' from r order by a nulls last, t;

-- name: union of constants
select 1, 'a' union select 2, 'b' union select 3, 'c' union select 1, 'a';

-- name: intersect of null literals
select null intersect select null;
