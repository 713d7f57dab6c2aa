package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"overrule.dev/overrule/internal/build"
	"overrule.dev/overrule/internal/cliflag"
	"overrule.dev/overrule/internal/controllers/canary"
	"overrule.dev/overrule/internal/guard"
)

// The exit codes of the canary command.
const (
	exitFailed  = 1
	exitUntried = 2
)

// exitError is an error that has an exit code.
type exitError struct {
	error

	code int
}

// Unwrap implements errors.Is and errors.As.
func (e *exitError) Unwrap() error { return e.error }

func ExitCode(err error) int {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return exitFailed
}

// untriable is an error for which nothing could be tried.
func untriable(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{err, exitUntried}
}

type canaryOptions struct {
	kubeconfig, namespace, output string
	enforcement                   guard.Enforcement
	timeout                       time.Duration
}

// canaryCommand is the command that tries an installation once.
func canaryCommand() *cobra.Command {
	var o canaryOptions
	cmd := &cobra.Command{
		Use:   "canary",
		Short: "Try once, by dry runs, whether writes are judged",
		Long: `canary sends dry runs through the API server: a PolicyProfile that must be
rejected, one that must pass and, with --canary-namespace, an HTTPRoute without
parents. Nothing is stored. It takes the right to create them.

Exit codes: 0 passed, 1 failed, 2 could not be tried.`,
		Args: func(cmd *cobra.Command, args []string) error { return untriable(cobra.NoArgs(cmd, args)) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return untriable(err)
			}
			return o.run(cmd)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.kubeconfig, "kubeconfig", "", kubeconfigUsage)
	cliflag.EnumVar(f, &o.enforcement, "enforcement", guard.EnforceDeny, guard.Enforcements, "deny, warn or audit: how the servers run")
	f.StringVar(&o.namespace, "canary-namespace", "", "namespace of a route to try, too: any but that of the servers (default: none)")
	f.DurationVar(&o.timeout, "timeout", canary.DefaultTimeout, "how long to wait for the answers; a webhook that hangs takes up to six seconds")
	cliflag.EnumVarP(f, &o.output, "output", "o", "text", []string{"text", "json"}, "text or json")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return untriable(cliflag.Error(err)) })
	return cmd
}

func (o canaryOptions) validate() error {
	return failed([]flagCheck{
		{"canary-namespace", o.namespace == "" || isLabel(o.namespace), mustBeLabel},
		{"timeout", o.timeout > 0, "must be above 0"},
	})
}

func (o canaryOptions) run(cmd *cobra.Command) error {
	c, err := o.canary()
	if err != nil {
		return untriable(err)
	}
	r := c.Run(cmd.Context())
	if err := write(cmd.OutOrStdout(), r, o.output); err != nil {
		return untriable(fmt.Errorf("write the result: %w", err))
	}
	switch r.Outcome {
	case canary.Passed:
		return nil
	case canary.Failed:
		return &exitError{errors.New("the canary failed"), exitFailed}
	default:
		return &exitError{errors.New("the canary could not be tried"), exitUntried}
	}
}

func (o canaryOptions) canary() (*canary.Canary, error) {
	cfg, err := clusterOf(o.kubeconfig)
	if err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = "overrule-canary/" + build.Read().Version
	return canary.New(cfg, canary.Options{
		Enforcement: does[o.enforcement], Namespace: o.namespace, Configuration: configurations, Timeout: o.timeout,
	})
}

func write(out io.Writer, r canary.Result, format string) error {
	if format == "text" {
		_, err := io.WriteString(out, r.Text())
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}
