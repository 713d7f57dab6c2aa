package cliflag_test

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/cliflag"
	"overrule.dev/overrule/test/messages"
)

type mode string

// flagSet has a flag of each kind that the tests need.
func flagSet(m *mode) *pflag.FlagSet {
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	cliflag.EnumVarP(f, m, "mode", "m", "deny", []mode{"deny", "warn"}, "what to do")
	f.DurationP("timeout", "t", time.Second, "how long to wait")
	return f
}

func TestEnumAcceptsOnlyAllowedValues(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want mode
		err  string
	}{
		"default":          {want: "deny"},
		"allowed":          {args: []string{"--mode=warn"}, want: "warn"},
		"shorthand":        {args: []string{"-m", "warn"}, want: "warn"},
		"the last one":     {args: []string{"-m", "warn", "--mode=deny"}, want: "deny"},
		"not allowed":      {args: []string{"--mode=maybe"}, want: "deny", err: `invalid value "maybe" for --mode`},
		"another case":     {args: []string{"-mWarn"}, want: "deny", err: `invalid value "Warn" for --mode`},
		"empty":            {args: []string{"--mode="}, want: "deny", err: `invalid value "" for --mode`},
		"another type":     {args: []string{"-t", "long"}, want: "deny", err: `invalid value "long" for --timeout: time: invalid duration "long"`},
		"unknown flag":     {args: []string{"--other"}, want: "deny", err: "unknown flag: --other"},
		"missing argument": {args: []string{"--mode"}, want: "deny", err: "flag needs an argument: --mode"},
	} {
		t.Run(name, func(t *testing.T) {
			var got mode
			err := cliflag.Error(flagSet(&got).Parse(c.args))
			assert.Equal(t, c.want, got)
			if c.err == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.err)
			messages.Golden(t, err.Error())
		})
	}
}

func TestEnumIsAStringInHelp(t *testing.T) {
	var m mode
	assert.Contains(t, flagSet(&m).FlagUsages(), `-m, --mode string        what to do (default "deny")`)
}
