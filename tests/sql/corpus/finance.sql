-- name: vwap
select sum(b * a) from e x where 2 * (select sum(b) from e) > 3 * (select sum(b) from e y where y.a > x.a);

-- name: VWAP
select sum(b1.price * b1.volume) from bids b1
where 0.25 * (select sum(b3.volume) from bids b3) > (select sum(b2.volume) from bids b2 where b2.price > b1.price);

-- name: VWAP by broker
select b1.broker_id, sum(b1.price * b1.volume) from bids b1
where 0.25 * (select sum(b3.volume) from bids b3) > (select coalesce(sum(b2.volume), 0) from bids b2 where b2.price > b1.price) group by b1.broker_id;

-- name: MST
select b.broker_id, sum(a.price * a.volume - b.price * b.volume) from bids b, asks a
where 0.25 * (select sum(a1.volume) from asks a1) > (select coalesce(sum(a2.volume), 0) from asks a2 where a2.price > a.price)
and 0.25 * (select sum(b1.volume) from bids b1) > (select coalesce(sum(b2.volume), 0) from bids b2 where b2.price > b.price) group by b.broker_id;

-- name: PSP
select sum(a.price - b.price) from bids b, asks a
where b.volume > 0.1 * (select sum(b1.volume) from bids b1) and a.volume > 0.1 * (select sum(a1.volume) from asks a1);

-- name: AXF
select b.broker_id, sum(a.volume - b.volume) from bids b, asks a
where b.broker_id = a.broker_id and (a.price - b.price > 10 or b.price - a.price > 10) group by b.broker_id;

-- name: BSP
select x.broker_id, sum(x.volume * x.price - y.volume * y.price) from bids x, bids y
where x.broker_id = y.broker_id and x.t > y.t group by x.broker_id;

-- name: BSV
select x.broker_id, sum(x.volume * x.price * y.volume * y.price * 0.5) from bids x, bids y where x.broker_id = y.broker_id group by x.broker_id;

-- name: best prices
select b.broker_id, max(b.price) bid, (select min(a.price) from asks a where a.broker_id = b.broker_id) ask from bids b group by b.broker_id;

-- name: threshold from above
select sum(volume) from bids b1 where (select sum(volume) from bids b2 where b2.price <= b1.price) >= 0.5 * (select sum(volume) from bids);
