package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// errCosts tells that something costs too much; what, was said.
var errCosts = errors.New("the regression gate does not pass")

func main() {
	klog.SetLogger(logr.Discard())
	if err := gate(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

// gate counts, and compares with the baseline or updates it.
func gate(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("cost", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error is told by main
	path := flags.String("baseline", "test/bench/cost/baseline.json", "file with the figures to compare with")
	count := flags.Bool("statements", false, "count executed statements, in a binary that was built to cover them, and not memory")
	update := flags.Bool("update", false, "write the baseline in place of comparing with it")
	only := flags.String("only", "", "run the scenarios with this in their name alone, and print their figures")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *update && *only != "" {
		return errors.New("-update takes all scenarios: leave out -only")
	}
	was, err := load(*path)
	if err != nil {
		return err
	}
	now, err := measure(ctx, *count, *only)
	if err != nil {
		return err
	}
	measures := []string{allocations, bytesUsed, heap}
	if *count {
		measures = []string{statements}
	}
	if *update {
		return was.with(now, measures).save(*path)
	}
	printTable(out, was, now, measures)
	if *only != "" {
		if len(now.Costs) == 0 {
			return fmt.Errorf("no scenario has %q in its name", *only)
		}
		return nil
	}
	return judge(out, was, now, measures)
}

// judge says what is different, and fails if it matters.
func judge(out io.Writer, was, now baseline, measures []string) error {
	var failed error
	for _, d := range compare(was, now, measures) {
		mark := "notice"
		if d.fails() {
			mark, failed = "FAIL", errCosts
		}
		fmt.Fprintf(out, "%s: %s\n", mark, d)
	}
	for _, l := range laws {
		if text := l.broken(now, measures); text != "" {
			fmt.Fprintln(out, "FAIL:", text)
			failed = errCosts
		}
	}
	if s := was.stranger(now.Go); s != "" {
		fmt.Fprintln(out, "notice:", s)
	}
	return failed
}

// measure runs every scenario, or those with a word in their name.
func measure(ctx context.Context, count bool, only string) (baseline, error) {
	now := baseline{Go: runtime.Version(), Costs: make(map[string]map[string]int64)}
	counter := allocated
	if count {
		counter = func(ops int, all func() error) (map[string]int64, error) { return executed(ctx, ops, all) }
	}
	for _, s := range scenarios {
		if !strings.Contains(s.name, only) {
			continue
		}
		cost, err := s.run(counter)
		if err != nil {
			return now, err
		}
		now.Costs[s.name] = cost
	}
	for _, h := range holdings {
		if count || !strings.Contains(h.name, only) {
			continue
		}
		cost, err := h.run()
		if err != nil {
			return now, err
		}
		now.Costs[h.name] = cost
	}
	return now, nil
}
