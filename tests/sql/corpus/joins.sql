-- name: bag projection
select b from r;

-- name: product
select r.a, s.c from r, s;

-- name: product of nothing
select r.a from r, s where d > 1000;

-- name: self join
select x.a, y.b from r x, r y where x.b = y.b and x.a < y.a;

-- name: three way
select e.a, r.b, s.d from e join r on e.a = r.a join s on e.b = s.c;

-- name: triangle
select count(*) from e x, e y, e z where x.b = y.a and y.b = z.a and z.b = x.a;

-- name: join using
select a, e.b, r.b rb from e join r using (a);

-- name: natural join
select * from e natural join r;

-- name: null safe join
select r.a, s.d from r join s on r.a is not distinct from s.c;

-- name: join on what is computed
select r.a, s.c, s.d from r join s on r.a % 3 = s.c;

-- name: join on what is computed on both sides
select r.a, s.c from r join s on abs(r.b - 3) = s.d % 4 and r.a < 4;

-- name: join on a value in place of null
select r.a, r.b, s.d from r join s on coalesce(r.b, 2) = s.c;

-- name: joins on what is computed in a chain
select x.a, y.d, z.b from r x, s y, e z where x.a % 2 = y.c and y.d % 3 = z.b and x.b is not null;

-- name: groups of a join on what is computed
select s.c, count(*) n, sum(r.b) b from r join s on r.a % 3 = s.c group by s.c;

-- name: outer join on what is computed
select r.a, s.d from r left join s on r.a % 3 = s.c;

-- name: join on a sum of columns of two tables
select x.a, s.c from r x join e y on x.a = y.a join s on x.b + y.b = s.c;

-- name: join on expressions
select r.a, s.c from r join s on r.a + 1 = s.c and r.b % 3 < s.d % 3;

-- name: left join
select a, b, d from r left join s on a = c;

-- name: left join count
select a, count(d), count(*) n, sum(d) from r left join s on a = c group by a;

-- name: left join where null
select a from r left join s on a = c where d is null;

-- name: left join, condition on the left
select a, d from r left join s on a = c and b > 10;

-- name: left join, condition on the right
select a, d from r left join s on a = c and d > 10;

-- name: left join, inequality
select a, d from r left join s on a < c;

-- name: left join of nothing
select a, d from r left join s on false;

-- name: two left joins
select r.a, x.d, y.d e from r left join s x on r.a = x.c left join s y on x.d = y.d;

-- name: left join of a join
select r.a, q.b, q.d from r left join (select e.a, e.b, s.d from e join s on e.b = s.c) q on q.a = r.a;

-- name: left join of groups
select r.a, coalesce(n, 0) n from r left join (select c, count(*) n from s group by c) q on q.c = r.a;

-- name: right join
select a, b, c, d from r right join s on a = c;

-- name: full join
select * from r full join s on a = c;

-- name: full join twice
select r.a, s.c, e.b from r full join s on r.a = s.c full join e on e.a = s.c;

-- name: full join using
select a, r.b, e.b eb from r full join e using (a);

-- name: full join, inequality beside
select r.a, s.c, s.d from r full join s on a = c and b <= d;

-- name: semi join
select a, b from r semi join s on r.a = s.c;

-- name: anti join
select a, b from r anti join s on r.a = s.c;

-- name: cross join of values
select a, v from e cross join (values (1), (null), (3)) t(v);

-- name: asof join
select e.a, s.c from e asof join s on e.b >= s.c;

-- name: asof left join
select r.a, r.b, e.a ea from r asof left join e on r.a < e.a;

-- name: asof join by an expression, summed
select q.k, sum(e.a) n from (select a k, b from r where b > 5) q asof left join e on q.k = e.b and q.b - 9 >= e.a group by q.k;

-- name: asof right join
-- refused: a join of kind asof right
select e.a, s.c from e asof right join s on e.b >= s.c;

-- name: positional join
-- refused: POSITIONAL
select e.a, s.d from e positional join s;

-- name: avg left join
select a, avg(d) from r left join s on a = c group by a;

-- name: cte twice
with t as (select a, sum(b) s from r group by a) select x.a, y.a z from t x join t y on x.s = y.s;

-- name: materialised cte
with t as materialized (select a, b from r where b > 5) select x.a, y.b from t x, t y where x.a = y.a;

-- name: nested from
select q.a + 1 k from (select a from (select a, b from r where b is not null) p where a > 1) q;

-- name: view of constants
select 1 x, 'one' y, null z;

-- name: inner join of what a full join by a subquery leaves
-- refused: a subquery in such a place
select y.b from s x full join r y on (not exists (select 0 from e z where z.a = y.b)) join e w on (y.a = w.b or w.a < y.b);

-- name: left join of what a left join by a subquery leaves
select y.b, w.a from s x left join r y on (x.d in (select z.b from e z where z.a = y.a)) left join e w on (y.a = w.b or w.a < x.d);

-- name: rows without a partner among what a full join by a subquery leaves
-- refused: a subquery in such a place
select y.b from s x full join r y on (not exists (select 0 from e z where z.a = y.b)) where not exists (select 1 from e w where y.a = w.b or w.a < y.b);

-- name: inner join of what a left join by a subquery leaves
select y.b, w.a from s x left join r y on (not exists (select 0 from e z where z.a = y.b)) join e w on (y.a = w.b or w.a < y.b);

-- name: inner join of what a right join by a subquery leaves
select x.d, w.a from s x right join r y on (x.d in (select z.b from e z where z.a = 1)) join e w on (y.a = w.b or w.a < y.b);
