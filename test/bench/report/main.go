// Command report reads what benchmarks printed (files, or standard input) and
// makes something to look at: the table of limits, or the picture of how costs
// grow.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"golang.org/x/perf/benchfmt"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

// run does what the command line asks for. Without files it reads in.
func run(args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	flags.SetOutput(out)
	svg := flags.String("svg", "", "draw the results of BenchmarkGrowth into this `file`, in place of the table")
	if err := flags.Parse(args); err != nil {
		return err
	}
	results, err := readAll(flags.Args(), in)
	if err != nil {
		return err
	}
	if *svg != "" {
		return writeCurves(*svg, results)
	}
	return writeTables(out, figuresOf(results))
}

// writeCurves leaves the file as it is if there is nothing to draw.
func writeCurves(file string, results []*benchfmt.Result) error {
	var picture bytes.Buffer
	if err := drawCurves(&picture, results); err != nil {
		return err
	}
	if err := os.WriteFile(file, picture.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the curves: %w", err)
	}
	return nil
}

// readAll reads the results of all files, or of in if there is none.
func readAll(files []string, in io.Reader) ([]*benchfmt.Result, error) {
	if len(files) == 0 {
		return read(in, "standard input")
	}
	var out []*benchfmt.Result
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the results: %w", err)
		}
		results, err := read(bytes.NewReader(data), name)
		if err != nil {
			return nil, err
		}
		out = append(out, results...)
	}
	return out, nil
}

// read reads results, and passes over lines that are none.
func read(r io.Reader, name string) ([]*benchfmt.Result, error) {
	var out []*benchfmt.Result
	reader := benchfmt.NewReader(r, name)
	for reader.Scan() {
		switch record := reader.Result().(type) {
		case *benchfmt.Result:
			out = append(out, record.Clone())
		case *benchfmt.SyntaxError:
			return nil, fmt.Errorf("read the results: %w", record)
		}
	}
	if err := reader.Err(); err != nil {
		return nil, fmt.Errorf("read the results: %w", err)
	}
	return out, nil
}
