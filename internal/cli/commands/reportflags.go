package commands

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"overrule.dev/overrule/internal/cli/printers"
	"overrule.dev/overrule/internal/cli/report"
	"overrule.dev/overrule/internal/cliflag"
)

// reportFormats are the formats of commands with findings, changeFormats those of diff.
var (
	reportFormats = append(slices.Clone(printers.Formats), printers.Texts(report.Formats, func(f report.Format) printers.Format { return f.Name })...)
	changeFormats = append(slices.Clone(printers.Formats), report.Markdown)
)

// failOn is which findings make a command exit with 1.
type failOn string

const (
	failOnDeny  failOn = "deny"
	failOnWarn  failOn = "warn"
	failOnNever failOn = "never"
)

// result returns errNegative if the command fails.
func (f failOn) result(denied, warned bool) error {
	if f != failOnNever && denied || f == failOnWarn && warned {
		return errNegative
	}
	return nil
}

// reportFlags say in which formats a result is written, and where.
type reportFlags struct {
	formats []printers.Format
	format  printers.Format
	files   []string // FORMAT=PATH
	outputs []output // stdout, and the files
	failOn  failOn
	root    string
}

// output is where a result is written to.
type output struct {
	format printers.Format
	path   string // "" for stdout
}

// add adds the flags; redact is whether the values of policies are omitted.
func (f *reportFlags) add(cmd *cobra.Command, redact *bool, formats []printers.Format) {
	f.formats = formats
	cmd.PreRunE = func(*cobra.Command, []string) error { return f.validate() }
	flags := cmd.Flags()
	cliflag.EnumVarP(flags, &f.format, "output", "o", printers.Table, formats, "output format: "+joinOr(formats))
	flags.StringArrayVar(&f.files, "output-file", nil, "also write the result to a file, given as FORMAT=PATH (repeatable)")
	flags.BoolVar(redact, "redact-values", false, "omit the values of policies from the result")
	flags.StringVar(&f.root, "report-root", "", "directory that the paths of files in reports are relative to (default: the root of the Git repository of each file)")
}

// addFailOn adds the flag --fail-on.
func (f *reportFlags) addFailOn(cmd *cobra.Command, what string) {
	cliflag.EnumVar(cmd.Flags(), &f.failOn, "fail-on", failOnDeny, []failOn{failOnDeny, failOnWarn, failOnNever}, "exit with 1 "+what)
}

func joinOr(formats []printers.Format) string {
	names := printers.Texts(formats, func(f printers.Format) string { return string(f) })
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// validate parses the files, before anything is evaluated.
func (f *reportFlags) validate() error {
	f.outputs = []output{{format: f.format}}
	var errs []error
	for _, text := range f.files {
		format, path, found := strings.Cut(text, "=")
		switch {
		case !found || path == "":
			errs = append(errs, fmt.Errorf("invalid --output-file %q: must be FORMAT=PATH", text))
		case !slices.Contains(f.formats, printers.Format(format)):
			errs = append(errs, fmt.Errorf("invalid --output-file %q: the format must be %s", text, joinOr(f.formats)))
		case slices.ContainsFunc(f.outputs, func(o output) bool { return o.path != "" && filepath.Clean(o.path) == filepath.Clean(path) }):
			errs = append(errs, fmt.Errorf("invalid --output-file %q: the file is already written in another format; specify one file for each format", text))
		default:
			f.outputs = append(f.outputs, output{printers.Format(format), path})
		}
	}
	if info, err := os.Stat(f.root); f.root != "" && (err != nil || !info.IsDir()) {
		errs = append(errs, fmt.Errorf("invalid --report-root %q: must be a directory", f.root))
	}
	return errors.Join(errs...)
}

// showsChanges reports whether some output shows effective policies before and after a
// change.
func (f *reportFlags) showsChanges() bool {
	return slices.ContainsFunc(f.outputs, func(o output) bool {
		format := report.FormatOf(o.format)
		return format != nil && format.ShowsChanges
	})
}

// write writes the result of a command to stdout and to the files of the flags. show writes
// it in the formats of printers, and fill adds it to the report that the others are made of.
func (f *reportFlags) write(t *terminal, command string, show func(printers.Printer) error, fill func(*reportBuilder)) error {
	filled := sync.OnceValue(func() *report.Report {
		b := f.newReport(t, command)
		fill(b)
		return &b.Report
	})
	write := func(p printers.Printer) error {
		format := report.FormatOf(p.Format)
		if format == nil {
			return show(p)
		}
		text, err := format.Text(filled())
		if err != nil {
			return fmt.Errorf("write the result as %s: %w", p.Format, err)
		}
		_, err = p.Out.Write(text)
		return err
	}
	var errs []error
	for _, o := range f.outputs {
		if o.path == "" {
			errs = append(errs, write(printers.Printer{Out: t.Out, Format: o.format, Color: t.color}))
			continue
		}
		var text bytes.Buffer
		err := write(printers.Printer{Out: &text, Format: o.format})
		if err == nil {
			err = os.WriteFile(o.path, text.Bytes(), 0o644) //nolint:gosec // as redirected output; other steps of a pipeline read it
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("write --output-file %s=%s: %w", o.format, o.path, err))
		}
	}
	if f.format == report.GitHub {
		errs = append(errs, addJobSummary(filled()))
	}
	return errors.Join(errs...)
}

// jobSummary is the variable with the file of the summary of a job on GitHub.
const jobSummary = "GITHUB_STEP_SUMMARY"

// addJobSummary adds the report to the summary of the job on GitHub, if it runs there.
func addJobSummary(r *report.Report) error {
	path := os.Getenv(jobSummary)
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // the runner names the file, and reads it
	if err == nil {
		_, err = io.WriteString(f, r.Summary())
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("write the job summary to %s: %w", jobSummary, err)
	}
	return nil
}
