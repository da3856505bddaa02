-- name: count bug
select a from r where (select count(*) from s where s.c = r.a) = 0;

-- name: count in select
select a, (select count(*) from s where s.c = r.a) n from r;

-- name: not in with nulls
select a from r where a not in (select c from s);

-- name: not in, no nulls inside
select a from r where a not in (select c from s where c is not null);

-- name: not in of nothing
select a from r where a not in (select c from s where d > 1000);

-- name: correlated not in
select a from r where b not in (select d from s where s.c = r.a);

-- name: not in of pairs
select a, b from r where (a, b) not in (select c, d from s);

-- name: in of pairs
select a, b from r where (a, b) in (select c, d from s);

-- name: exists, inequality
select a from r where exists (select 1 from s where s.d > r.b);

-- name: not exists, inequality
select a from r where not exists (select 1 from s where s.c = r.a and s.d > r.b);

-- name: exists or
select a from r where b = 20 or exists (select 1 from s where s.c = r.a);

-- name: in under or
select a from r where b = 5 or a in (select c from s);

-- name: in subquery or
select a from r where a in (select c from s) or b in (select d from s);

-- name: exists as value
select a, exists (select 1 from s where s.c = r.a) e from r;

-- name: in as value
select a, a in (select c from s) i, a not in (select c from s) n from r;

-- name: exists without correlation
select a from e where exists (select 1 from s where d > 10);

-- name: exists twice
select a from e where exists (select 1 from r where r.a = e.a) and not exists (select 1 from s where s.c = e.b);

-- name: exists of an aggregate
select a from e where exists (select count(*) from s where s.c = e.a);

-- name: scalar, inequality agg
select a from r where b > (select min(d) from s where s.d > r.a);

-- name: scalar sum in select, ineq
select a, (select sum(d) from s where s.c <= r.a) t from r;

-- name: scalar in arithmetic
select a + (select max(c) from s) x from e;

-- name: scalar over a join
select a, (select max(x.d + y.b) from s x join e y on x.c = y.a where y.b = r.a) t from r;

-- name: scalar without correlation, empty
select a, (select d from s where d > 1000) t from r;

-- name: scalar > 1 row
-- raises: More than one row
select a from r where b = (select d from s where s.c = r.a);

-- name: scalar > 1 row in select
-- raises: More than one row
select a, (select d from s where s.c = e.a) t from e;

-- name: scalar > 1 row without correlation
-- raises: More than one row
select a from e where b = (select c from s);

-- name: scalar of a unique row
select a, (select y.b from e y where y.a = r.a) t from r where a <> 2;

-- name: two levels
select a from r where exists (select 1 from s where s.c = r.a and exists (select 1 from r r2 where r2.b = s.d and r2.a = r.a));

-- name: correlated over two levels
select a from r where b >= (select min(d) from s where s.c in (select e.a from e where e.b > r.a));

-- name: gt all
select a from r where b > all (select d from s where s.c = r.a);

-- name: gt any
select a from r where b > any (select d from s where d is not null);

-- name: unequal all with nulls
select a from r where b <> all (select d from s);

-- name: equal any in select
select a, b = any (select d from s where s.c >= r.a) q from r;

-- name: lateral
select a, x.d from r, lateral (select d from s where s.c = r.a order by d limit 1) x;

-- name: lateral agg
select a, q.m from e, lateral (select max(d) m from s where s.c = e.a) q;

-- name: lateral left
select a, x.d from r left join lateral (select d from s where s.c = r.a order by d desc nulls last limit 2) x on true;

-- name: lateral without limit
select a, x.d from r, lateral (select d + r.b d from s where s.c <> r.a) x;

-- name: lateral over lateral
select a, x.n, y.k from e, lateral (select count(*) n from s where s.c >= e.a) x, lateral (select x.n * e.b k) y;

-- name: limit in scalar
select a, (select d from s where s.c = r.a order by d desc limit 1) t from r;

-- name: coalesce around
select coalesce((select max(d) from s where s.c = r.a), 0) t from r;

-- name: case around
select a, case when exists (select 1 from s where s.c = r.a) then 'y' else 'n' end k from r;

-- name: subqueries in case
select a, case when b > 10 then (select max(d) from s where c = a) else (select min(d) from s) end k from r;

-- name: having correlated
select a, sum(b) from r group by a having sum(b) > (select avg(d) from s where s.c = r.a);

-- name: subquery over groups
select a, (select count(*) from s where s.c = q.a and s.d < q.t) n from (select a, sum(b) t from r group by a) q;

-- name: scalar in order by
-- ordered
select a, b from e order by (select count(*) from s where s.c = e.a), a, b;

-- name: array of a subquery
-- refused: list
select a, array(select d from s where s.c = e.a order by d) l from e;

-- name: subquery over union
select a from e where b in (select c from s union all select b from r where b < 10);

-- name: subquery over a window
select a from e where b in (select d - 9 from (select d, row_number() over (partition by c order by d) k from s) q where k = 1);

-- name: in without from
select 1 x where 5 in (select a from e);

-- name: in without from, as values
select 2 in (select c from s) i, 9 in (select c from s) n, 9 not in (select c from s) m;

-- name: constant in a null
select 1 in (select d from s where d is null) i from e;

-- name: unequal any, equal all
select a, b <> any (select d from s where c = a) x, b = all (select d from s where c = a) y from r;

-- name: distinct where never true
select distinct a from r where null not between null and a;

-- name: absence, looked up in the table
select a, b from r where not exists (select * from s where s.c = r.a);

-- name: absence, NULL is a value like others
select a, b from r where not exists (select * from s where s.c is not distinct from r.a);

-- name: absence, of rows that are asked about
select a, b from r where b > 5 and a in (1, 2, 3, 4) and not exists (select * from s where s.d = r.b and s.c = r.a);

-- name: absence, and presence of the same
select a, exists (select * from s where s.c = r.a) x, not exists (select * from s where s.c = r.a) y from r;

-- name: absence, twice negated
select a, b from r where not (not exists (select * from s where s.c = r.a) and b > 5);

-- name: absence, or presence
select a, b from r where not exists (select * from e where e.a = r.a) or exists (select * from s where s.d = r.b);

-- name: absence, from a list of what can't be NULL
select a, b from e where a not in (select b from e);

-- name: scalar beside a table of which nothing is read
select (select max(x.d) from s x join e y on x.c = y.a where y.b = r.b) m from r cross join s;
