-- name: window topk
select a, row_number() over (partition by a order by b desc) k from r qualify k <= 2;

-- name: row_number
select a, b, row_number() over (order by a, b) k from e;

-- name: row_number by group
select c, d, row_number() over (partition by c order by d desc nulls last) k from s;

-- name: rank
-- sqlite: NULLs come first
select a, b, rank() over (order by b) k, dense_rank() over (order by b) d from r;

-- name: rank by group
select dept, id, rank() over (partition by dept order by salary desc nulls last) k from emp;

-- name: other ranks
select id, ntile(3) over (order by id) n, percent_rank() over (order by id) p, cume_dist() over (order by id) c from emp;

-- name: aggregates over all
select a, b, sum(b) over () s, count(*) over () n from r;

-- name: aggregates over partitions
select a, b, sum(b) over (partition by a) s, count(b) over (partition by a) n, avg(b) over (partition by a) v, max(b) over (partition by a) m from r;

-- name: running sum
select a, b, sum(b) over (partition by a order by b) s from r;

-- name: running count, rows
select a, b, count(*) over (order by a, b rows between unbounded preceding and current row) n from e;

-- name: moving sum
select id, sum(salary) over (order by id rows between 1 preceding and 1 following) s from emp;

-- name: moving sum, ahead
select id, sum(salary) over (partition by dept order by id rows between 1 following and 2 following) s from emp;

-- name: range frame
select a, b, sum(a) over (order by b range between 5 preceding and 5 following) s from r;

-- name: range frame, downwards
select a, b, sum(b) over (partition by a order by b desc range between 5 preceding and 1 following) s, count(*) over (partition by a order by b desc range between 5 preceding and 1 following) n from r;

-- name: range frame, behind
-- sqlite: puts NULL first
select a, b, count(*) over (order by a nulls first range between 1 following and 3 following) n, max(b) over (order by a range between unbounded preceding and 1 preceding) m from r;

-- name: range frame of months
-- refused: frame between expressions
select id, count(*) over (order by hired range between interval 1 month preceding and current row) n from emp;

-- name: range frame of a column
-- refused: frame between expressions
select a, count(*) over (order by b range between a preceding and current row) n from e;

-- name: rows of a column
-- refused: frame between expressions
select a, count(*) over (order by b rows between a preceding and current row) n from e;

-- name: range of days
select id, count(*) over (order by hired range between interval 30 days preceding and current row) n from emp;

-- name: range of hours among dates
select id, count(*) over (order by hired range between interval 36 hours preceding and interval 25 days following) n from emp;

-- name: range of a time
with timed as (select b, id, (timestamp '2026-03-01 10:00:00' + to_minutes(20 * b)) t from (select c id, d b from s))
select id, sum(b) over (partition by id % 2 order by t range between interval 1 hour preceding and interval 20 minutes preceding) n, max(b) over (order by t desc range between interval '1.5' second preceding and unbounded following) m from timed;

-- name: range of a time, downwards
select id, count(*) over (order by hired::timestamp desc nulls first range between interval 30 days preceding and interval 1 day following) n from emp;

-- name: groups frame
-- sqlite: NULLs come first
select a, b, count(*) over (order by b groups between 1 preceding and current row) n from r;

-- name: frame exclusion
-- refused: EXCLUDE
select id, sum(salary) over (order by id rows between 1 preceding and 1 following exclude current row) s from emp;

-- name: lag and lead
select id, lag(id) over (order by id) p, lead(id, 2, -1) over (order by id) n from emp;

-- name: lag by group
select dept, id, salary - lag(salary) over (partition by dept order by id) d from emp;

-- name: first and last value
select id, first_value(id) over (partition by dept order by hired, id) f, last_value(id) over (partition by dept order by hired, id) l,
  last_value(id) over (partition by dept order by hired, id rows between unbounded preceding and unbounded following) ll from emp;

-- name: nth value
select id, nth_value(id, 2) over (partition by dept order by id) n from emp;

-- name: two windows
select a, b, row_number() over (order by a, b) x, sum(b) over (partition by a) y from e;

-- name: named window
select a, b, sum(b) over w s, count(*) over w n from r window w as (partition by a order by b);

-- name: window over groups
select a, sum(b) s, rank() over (order by sum(b) desc nulls last) k from r group by a;

-- name: window in an expression
select a, b, 100.0 * b / sum(b) over (partition by a) share from e;

-- name: qualify by a rank
select dept, id, salary from emp qualify rank() over (partition by dept order by salary desc nulls last) = 1;

-- name: qualify by a count
select a, b from r qualify count(*) over (partition by a) > 1;

-- name: window over a join
select e.a, s.d, row_number() over (partition by e.a order by s.d nulls first, e.b) k from e join s on e.b = s.c;

-- name: window over a left join
select r.a, sum(s.d) over (partition by r.a) t from r left join s on r.a = s.c;

-- name: distinct in a window
-- refused: DISTINCT in a window
select a, b, count(distinct b) over (partition by a) n from r;

-- name: filter in a window
select a, b, count(*) filter (where b > 10) over (partition by a) n from r;

-- name: ignore nulls
-- refused: IGNORE NULLS
select id, last_value(salary ignore nulls) over (order by id rows between unbounded preceding and current row) s from emp;

-- name: window of text
select k, g, min(g) over (partition by k) lo, row_number() over (partition by k order by g nulls last, p nulls last, q nulls last, x nulls last, f nulls last, day nulls last, moment nulls last) n from m;

-- name: window under an aggregate
select k, count(*) n from (select row_number() over (partition by a order by b) k from r) q group by k;

-- name: joined to its window
select x.a, x.b from r x join (select a, row_number() over (partition by a order by b nulls last) k, b from r) y on x.a = y.a and y.k = 1 and x.b = y.b;

-- name: one partition said twice
select a, b, dense_rank() over (partition by a, a order by b nulls first, b desc) d, max(b) over (partition by a, a order by b nulls last) m from r;

-- name: a frame that ends before it begins
-- refused: a frame that ends before it begins
select a, count(*) over (order by b rows between 3 following and 1 following) n from r;

-- name: a default that is infinite
-- sqlite: it has none
select k, x, lead(x, 1, 'infinity'::double) over (partition by k order by x, q) y from m where x is not null;

-- name: tiles by a column
-- sqlite: of any row's number
-- refused: ntile\(\) by what is no literal
select k, ntile(k) over (order by x) n from m;

-- name: a frame in no order
select k, sum(1) over (rows between 1 preceding and 1 following) n from (select 1 k);

-- name: row numbers of a table beside a window
-- sqlite: counts rows from 1
-- refused: rowid
select rowid, count(*) over () n from e;
