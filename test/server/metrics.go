package server

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"overrule.dev/overrule/test/process"
)

// Metric returns the sum of the series of a metric that have all of these labels, such as
// `kind="HTTPRoute"`. It returns false if the server does not answer.
func (s *Server) Metric(ctx context.Context, name string, labels ...string) (sum float64, ok bool) {
	ok, page := process.OK("http://" + s.Metrics + "/metrics")(ctx)
	if !ok {
		return 0, false
	}
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		end := strings.LastIndexByte(line, ' ')
		series, has, _ := strings.Cut(line[:max(end, 0)], "{")
		if series != name || slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(has, l) }) {
			continue
		}
		value, err := strconv.ParseFloat(line[end+1:], 64)
		if err != nil {
			return 0, false
		}
		sum += value
	}
	return sum, true
}
