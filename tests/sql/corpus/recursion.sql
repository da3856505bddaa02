-- name: recursive
with recursive t(a,b) as (select a,b from e union select t.a,e.b from t join e on t.b=e.a) select * from t;

-- name: recursive, right
with recursive t(a, b) as (select a, b from e union select e.a, t.b from e join t on e.b = t.a) select a, count(*) n from t group by a;

-- name: recursive, twice
-- refused: reads itself twice
with recursive t(a, b) as (select a, b from e union select x.a, y.b from t x join t y on x.b = y.a) select * from t where a = b;

-- name: recursive from a constant
with recursive t(n) as (select 1 union select b from t join e on e.a = t.n) select n from t;

-- name: recursive with a bound
with recursive t(a, b, k) as (select a, b, 1 from e union all select t.a, e.b, k + 1 from t join e on t.b = e.a where k < 3) select * from t;

-- name: counting
with recursive t(n) as (select 1 union all select n + 1 from t where n < 5) select n from t;

-- name: recursive over nulls
with recursive t(a) as (select a from r where a is null or a = 1 union select d - 9 from t join s on t.a is not distinct from s.c) select a from t;

-- name: recursive with a negated table
with recursive t(a) as (select 1 union select e.b from t join e on e.a = t.a where not exists (select 1 from s where s.c = e.b and s.d > 15)) select a from t;

-- name: recursive, aggregated outside
with recursive t(id, top) as (select id, id from emp where boss is null union select emp.id, t.top from t join emp on emp.boss = t.id)
select top, count(*) n, sum(emp.salary) s from t join emp using (id) group by top;

-- name: recursive, used twice
with recursive t(a, b) as (select a, b from e union select t.a, e.b from t join e on t.b = e.a) select x.a from t x where not exists (select 1 from t y where y.a = x.b);

-- name: recursive, using key
-- refused: USING KEY
with recursive t(a, b) using key (a) as (select a, b from e union select t.a, e.b from t join e on t.b = e.a where e.b > t.b) select a, b from t;

-- name: recursive, two steps
with recursive t(a) as (select 1 union (select e.b from t join e on e.a = t.a where e.b < 4 union all select e.a from t join e on e.b = t.a)) select a from t;

-- name: recursive, twice by a name
-- refused: reads itself twice
with recursive t(a, b) as (select a, b from e union (with u as materialized (select a, b from t) select x.a, y.b from u x join u y on x.b = y.a)) select a from t where a = b;

-- name: recursive, recurring
-- refused: recurring
with recursive t(n) as (select 1 union select n + 1 from recurring.t where n < 3) select n from t;

-- name: all, from equal rows
with recursive t(n) as (values (1), (4), (4) union all select n + 1 from t where n < 6) select n, count(*) c from t group by n;

-- name: all, equal rows of each level
with recursive t(n, k) as (select 8, 0 union all select n // 2, k + 1 from t where k < 6) select n from t;

-- name: all, a series summed
with recursive t(n, s) as (values (1, 1) union all select n + 1, s + n + 1 from t where n < 100) select sum(n) a, max(s) b from t;

-- name: all, depth and path
-- ordered
with recursive t(id, depth, path) as (
    select id, 0, name from emp where boss is null
    union all select emp.id, depth + 1, path || '/' || name from t join emp on emp.boss = t.id where depth < 5)
select depth, path, id from t order by depth, path, id;

-- name: all, bill of materials
with recursive t(part, n) as (
    select b, a from e where a = 1
    union all select e.b, t.n * (1 + e.a) from t join e on e.a = t.part where t.n < 40)
select part, sum(n) s, count(*) c from t group by part;

-- name: all, along a bag
with recursive t(a, b, k) as (select a, b, 0 from r union all select t.a, s.d, k + 1 from t join s on s.c = t.a where k < 2) select a, b, k from t;

-- name: all, columns that nothing reads
with recursive t(k) as (select 0 from s where d > 10 union all select k + 1 from t, r where k < 2) select k, count(*) n from t group by k;

-- name: all, two branches of each
with recursive t(a, k) as (
    (select a, 0 from r union all select b, 0 from e)
    union all (select a, k + 1 from t where k < 2 union all select e.b, k + 1 from t join e on e.a = t.a where k < 2))
select a, k from t;

-- name: all, over nulls
with recursive t(a, k) as (select b, 0 from r union all select s.d, k + 1 from t join s on t.a is not distinct from s.d where k < 2) select a, count(*) n from t group by a;

-- name: all, texts with separators
with recursive t(x, k) as (
    select v, 1 from (values ('a,b'), ('a'), (',b'), ('1:a'), (''), (null)) u(v)
    union all select x || ',' || t, k + 1 from t, tx where k < 2)
select x, k from t;

-- name: all, texts of a bag
with recursive t(x, k) as (select g, 0 from m union all select t.x || m.g, t.k + 1 from t join m on m.g <> t.x where t.k < 2 and m.k < 3) select x, count(*) n from t group by x;

-- name: all, days
-- sqlite: has no dates
with recursive t(d, n) as (select d, 0 from dt union all select cast(d + interval 1 month as date), n + 1 from t where n < 3) select d, n from t;

-- name: all, keys of every type
with recursive t(k, n) as (select k, 0 from m union all select t.k, n + 1 from t join (select distinct p, x, f, day, moment, k from m) o on o.k = t.k where n < 2) select k, n from t;

-- name: all, the last level twice
with recursive t(a, k) as (select a, 0 from r union all select x.a, x.k + 1 from t x join t y on x.a = y.a where x.k < 2) select a, count(*) n from t group by a;

-- name: all, doubling
with recursive t(n) as (select 1 union all select x.n + y.n from t x, t y where x.n < 100) select n from t;

-- name: all, joined with itself
with recursive t(a, b, k) as (select a, b, 0 from e union all select t.a, e.b, k + 1 from t join e on t.b = e.a where k < 2) select x.a, y.b from t x join t y on x.b = y.a and x.k = y.k where x.a < 3;

-- name: all, distinct outside
with recursive t(a, k) as (select a, 0 from e union all select e.b, k + 1 from t join e on e.a = t.a where k < 3) select distinct a from t;

-- name: all, with an outer join
with recursive t(a, k) as (select a, 0 from e union all select s.d, k + 1 from t left join s on s.c = t.a where k < 2) select a, k from t;

-- name: all, with subqueries of tables
with recursive t(a, k) as (
    select 1, 0 union all select e.b, k + 1 from t join e on e.a = t.a
    where k < 6 and e.b in (select c from s) and not exists (select 1 from r where r.a = e.b and r.b is null))
select a, k from t;

-- name: all, a column that a subquery decides
with recursive t(a, k, f) as (select a, 0, false from e union all select a, k + 1, a in (select c from s) from t where k < 2) select a, k, f from t;

-- name: all, of groups
with recursive t(a, n) as (select a, count(*) from r group by a union all select t.a, t.n - 1 from t where n > 0) select a, n from t;

-- name: all, of a recursion
with recursive u(a, k) as (select a, 0 from r union all select a, k + 1 from u where k < 1),
t(a, k) as (select a, k from u union all select e.b, t.k + 1 from t join e on e.a = t.a where k < 2) select a, k from t;

-- name: all, in each step a recursion
with recursive t(a, k) as (
    select 1, 0
    union all select t.a + v.n, k + 1 from t, (with recursive u(n) as (select 1 union all select n + 1 from u where n < 2) select n from u) v where k < 3)
select a, k from t;

-- name: all, read by NOT IN
with recursive t(n) as (select 1 union all select n + 2 from t where n < 5) select a, b from e where a not in (select n from t);

-- name: all, kept apart from a column of its name
with recursive t(level, path) as (select a, 'x' from e union all select level - 1, path || level from t where level > 1) select level, path from t;

-- name: all, a filter of everything
with recursive t(n) as (select a from e where a > 9 and a < 3 union all select n + 1 from t where n < 5) select n from t;

-- name: all, an order of levels
-- ordered
with recursive t(n, k) as (select 10, 0 union all select n - 1, k + 1 from t where n > 0) select n from t order by k limit 3;

-- name: all, grouped in the step
-- refused: through groups
with recursive t(n) as (select 1 union all select max(n) + 1 from t where n < 5 group by n % 2) select n from t;

-- name: all, distinct in the step
-- sqlite: steps from one row at a time
-- refused: through groups
with recursive t(n) as (values (1), (1) union all select distinct n + 1 from t where n < 5) select n from t;

-- name: all, numbered in the step
-- refused: through groups
with recursive t(n, k) as (select a, 0 from e union all select row_number() over (order by n), k + 1 from t where k < 2) select n from t;

-- name: all, in a subquery of the step
-- refused: through groups or a subquery
with recursive t(n, k) as (select 1, 0 union all select e.b, 1 from e where e.a in (select n from t where k < 1)) select n from t;

-- name: all, negated in the step
-- refused: through groups or a subquery
with recursive t(n, k) as (select 1, 0 union all select e.b, 1 from e where not exists (select 1 from t where k > 0 or t.n = e.a)) select n from t;

-- name: all, using key
-- refused: USING KEY
with recursive t(a, b) using key (a) as (select a, b from e union all select t.a, e.b from t join e on t.b = e.a where e.b > t.b) select a, b from t;
