-- name: limit
-- ordered
select a, b from e order by b desc, a limit 2;

-- name: order limit bag
-- ordered
select b from r order by b nulls last limit 3;

-- name: order by
-- ordered
select a, b from r order by a desc nulls first, b nulls last;

-- name: order by an expression
-- ordered
select a, b from e order by a * b % 5, a, b;

-- name: order by a column that is not shown
-- ordered: 1
select a from e order by a, b desc;

-- name: offset
-- ordered
select a, b from r order by a nulls last, b nulls last limit 3 offset 2;

-- name: offset alone
-- ordered
select a from r order by a nulls first offset 4;

-- name: limit 0
-- ordered
select a from r limit 0;

-- name: limit beyond
-- ordered
select a from r order by a nulls last limit 100;

-- name: limit in from
select q.a, s.d from (select a from r order by a nulls last, b nulls last limit 3) q left join s on s.c = q.a;

-- name: limit of equal rows
select sum(b) s from (select b from r order by b desc nulls last limit 3) q;

-- name: limit by a subquery
-- refused: LIMIT
select a from (select a from e order by a, b limit (select count(*) from s where c = 1)) q;

-- name: percentage
-- refused: LIMIT
select a from (select a from e order by a, b limit 40%) q;

-- name: fetch with ties
-- ordered: 1
select a, b from (select a, b, rank() over (order by a) k from e) q where k <= 2 order by a;

-- name: limit over groups
-- ordered
select a, sum(b) s from r group by a order by s desc nulls last, a nulls last limit 2;

-- name: distinct with limit
-- ordered
select distinct b from r order by b desc nulls last limit 2;

-- name: distinct on
-- ordered
select distinct on (a) a, b from r order by a, b desc nulls last;

-- name: distinct on of a join
-- ordered: 1
select distinct on (e.a) e.a, e.b, s.d from e left join s on s.c = e.b order by e.a, e.b, s.d nulls last;

-- name: order by in a subquery
select a from (select a, b from e order by b) q where a > 1;

-- name: sample
-- refused: SAMPLE
select count(*) from (select a from r using sample 100%) q;

-- name: distinct in an order of another column
-- ordered: 1
-- sqlite: it has a row for each of both
select distinct a from r order by a, b;
