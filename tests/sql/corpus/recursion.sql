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
-- refused: UNION ALL in a recursion
with recursive t(a, b, k) as (select a, b, 1 from e union all select t.a, e.b, k + 1 from t join e on t.b = e.a where k < 3) select * from t;

-- name: counting
-- refused: UNION ALL in a recursion
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
