package main

// limit is a row of the table in docs/performance.md.
type limit struct {
	what string
	// most is the limit and aim the aim, in the unit of the metric; no aim is 0.
	most, aim float64
	benchmark string
	metric    string
	format    func(float64) string
	// ours and reference are metrics of the same benchmark: what the ratio is
	// of. "" where there is no reference.
	ours, reference string
	time            func(float64) string // how those two are shown
}

// limits are all limits that Overrule promises. A row of the design with several
// values has a row for each.
var limits = []limit{
	p50("one route write, one client, p50", "RouteWrite"),
	p50("one route-policy write, one client, p50", "RoutePolicyWrite"),
	p99("one route write, one client, p99", "RouteWrite"),
	p99("one route-policy write, one client, p99", "RoutePolicyWrite"),
	perOperation("a gateway-policy write that touches 10,000 routes, each with a policy of its own", "GatewayPolicyWrite/own-policy", 60e6, 25e6),
	perOperation("the same, with a `when`", "GatewayPolicyWrite/own-policy-when", 120e6, 25e6),
	perOperation("the same, where the routes have no policy of their own", "GatewayPolicyWrite/no-policy", 10e6, 5e6),
	perOperation("effective policies of 5,000 paths, each route with a policy of its own, from cold", "Effective/paths=5000", 25e6, 12e6),
	perOperation("one informer event of a route", "Event/route", 50e3, 20e3),
	perOperation("one informer event of a policy", "Event/policy", 50e3, 20e3),
	held("memory held for a route", "KiB/route"),
	held("memory held for a policy", "KiB/policy"),
	{
		what: "start to ready with 10,000 routes and as many policies", most: 1.3,
		benchmark: "Start", metric: "ratio", format: ratio, ours: "overrule-ms", reference: "informer-ms", time: millis,
	},
}

func p50(what, benchmark string) limit { return besideNothing(what, benchmark, "p50", 1.25, 1) }

func p99(what, benchmark string) limit { return besideNothing(what, benchmark, "p99", 2, 1.5) }

func besideNothing(what, benchmark, quantile string, most, aim float64) limit {
	return limit{
		what: what, most: most, aim: aim, benchmark: benchmark + "/clients=1", metric: quantile + "-ratio", format: ratio,
		ours: overrule + quantile + microseconds, reference: nothing + quantile + microseconds, time: micros,
	}
}

func perOperation(what, benchmark string, most, aim float64) limit {
	return limit{what: what, most: most, aim: aim, benchmark: benchmark, metric: nsPerOp, format: nanos}
}

func held(what, metric string) limit {
	return limit{what: what, most: 6, aim: 4, benchmark: "Memory", metric: metric, format: kibibytes}
}

// limits returns the rows: what, limit, aim, measured, reference, and whether the
// limit is met.
func (f figures) limits() [][]string {
	rows := make([][]string, len(limits))
	for i, l := range limits {
		rows[i] = l.row(f)
	}
	return rows
}

func (l limit) row(f figures) []string {
	aim, reference := "", ""
	if l.aim > 0 {
		aim = bound(l.aim, l.format)
	}
	v, ok := f.get(l.benchmark, l.metric)
	if !ok {
		return []string{l.what, bound(l.most, l.format), aim, unmeasured, "", unmeasured}
	}
	measured := l.format(v)
	if l.reference != "" {
		measured += " (" + f.show(l.benchmark, l.ours, l.time) + ")"
		reference = f.show(l.benchmark, l.reference, l.time)
	}
	return []string{l.what, bound(l.most, l.format), aim, measured, reference, l.verdict(v)}
}

func (l limit) verdict(v float64) string {
	switch {
	case l.aim > 0 && v <= l.aim:
		return "aim met"
	case v <= l.most:
		return "met"
	default:
		return "**not met**"
	}
}
