package main

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Parts of the names of metrics: the webhook, and the unit after the quantile.
const (
	nothing      = "nothing-"
	overrule     = "overrule-"
	microseconds = "-µs"
)

// latencies returns the quantiles of each kind of write, by clients and webhook.
func (f figures) latencies() [][]string {
	var rows [][]string
	for _, write := range []struct{ what, benchmark string }{
		{"route", "RouteWrite"}, {"route policy", "RoutePolicyWrite"},
	} {
		for _, clients := range []int{1, 16, 64} {
			benchmark := write.benchmark + "/clients=" + strconv.Itoa(clients)
			for _, by := range []struct{ webhook, prefix string }{{"does nothing", nothing}, {"Overrule", overrule}} {
				row := []string{write.what, strconv.Itoa(clients), by.webhook}
				for _, quantile := range []string{"p50", "p99", "p99.9"} {
					row = append(row, f.show(benchmark, by.prefix+quantile+microseconds, micros))
				}
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// applied returns the quantiles of writes through a real API server, by what
// sends them and the webhooks that are called.
func (f figures) applied() [][]string {
	const benchmark = "Apply"
	var rows [][]string
	for _, by := range []struct{ what, prefix string }{{"one request", ""}, {"kubectl apply", "kubectl-"}} {
		for _, variant := range []struct{ webhooks, name string }{{"none", "none-"}, {"do nothing", nothing}, {"Overrule", overrule}} {
			metric := by.prefix + variant.name
			if _, ok := f.get(benchmark, metric+"p50-ms"); !ok {
				continue
			}
			added := ""
			if variant.name != "none-" {
				added = f.show(benchmark, metric+"added-ms", millis)
			}
			rows = append(rows, []string{
				by.what, variant.webhooks, f.show(benchmark, metric+"p50-ms", millis), f.show(benchmark, metric+"p99-ms", millis), added,
			})
		}
	}
	return rows
}

// others returns the measured values that no row of limits has.
func (f figures) others() [][]string {
	var rows [][]string
	if v, ok := f.get("GatewayPolicyWrite/mix", nsPerOp); ok {
		rows = append(rows, []string{"a write of the busy gateway's policy: 5,000 routes of the mix", nanos(v)})
	}
	for _, scrape := range [][2]string{
		{"unchanged", "a scrape of what the store holds, nothing changed"},
		{"changed", "the same, all paths recounted"},
		{"bare", "the same, where there are no policies"},
		{"walk", "a visit of all these paths, for comparison"},
	} {
		if v, ok := f.get("Scrape/"+scrape[0], nsPerOp); ok {
			rows = append(rows, []string{scrape[1], nanos(v)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.values)) {
		if !strings.HasPrefix(name, "Load/") {
			continue
		}
		for _, metric := range slices.Sorted(maps.Keys(f.values[name])) {
			if metric == nsPerOp || strings.HasSuffix(metric, "/op") {
				continue // of a round of all clients
			}
			v, _ := f.get(name, metric)
			rows = append(rows, []string{"under load, " + strings.TrimPrefix(name, "Load/") + ": " + nameOfMetric(metric), inUnit(v, metric)})
		}
	}
	return rows
}

// heavy returns the results of large inputs.
func (f figures) heavy() [][]string {
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(f.values)) {
		what, ok := strings.CutPrefix(name, "Heavy/")
		if !ok {
			continue
		}
		took, _ := f.get(name, nsPerOp)
		busy, _ := f.get(name, "busy-ms")
		answer := "evaluated"
		if tooMuch, _ := f.get(name, "too-much"); tooMuch > 0 {
			answer = "too much"
		}
		rows = append(rows, []string{
			what, answer, nanos(took), nanos(took + busy*1e6),
			f.show(name, "mutate-ms", millis), f.show(name, "peak-MiB", mebibytes),
		})
	}
	return rows
}

// units are those that metrics of time end with.
var units = map[string]func(float64) string{"-µs": micros, "-ms": millis, nsPerOp: nanos}

// nameOfMetric is a metric without a unit that its value is shown with.
func nameOfMetric(metric string) string {
	for unit := range units {
		if name, ok := strings.CutSuffix(metric, unit); ok && name != "" {
			return name
		}
	}
	return metric
}

func inUnit(v float64, metric string) string {
	for unit, format := range units {
		if strings.HasSuffix(metric, unit) {
			return format(v)
		}
	}
	return number(v)
}
