package server

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMemoryLimit(t *testing.T) {
	const before = 3 << 40
	fails := func(err error) memlimit.Provider { return func() (uint64, error) { return 0, err } }
	for name, c := range map[string]struct {
		container memlimit.Provider
		set       string // GOMEMLIMIT
		want      int64
		wantLog   string
	}{
		"nine tenths of 512 MiB": {container: memlimit.Limit(512 << 20), want: 512 << 20 * 9 / 10, wantLog: `"GOMEMLIMIT is updated"`},
		"the value of GOMEMLIMIT, if set": {
			container: memlimit.Limit(512 << 20), set: "1GiB", want: before, wantLog: `"GOMEMLIMIT is already set, skipping"`,
		},
		"none without a limit":              {container: fails(memlimit.ErrNoLimit), want: math.MaxInt64},
		"none outside of a container":       {container: fails(fmt.Errorf("read: %w", memlimit.ErrNoCgroup)), want: math.MaxInt64},
		"none without cgroups":              {container: fails(memlimit.ErrCgroupsNotSupported), want: math.MaxInt64},
		"unchanged if the limit is unknown": {container: fails(errors.New("no such file")), want: before, wantLog: `"cannot read the memory limit; set GOMEMLIMIT to 90% of the container's limit" "err"="failed to set GOMEMLIMIT: no such file"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", c.set) // restored after the test
			t.Setenv("AUTOMEMLIMIT", "1")
			require.NoError(t, os.Unsetenv("AUTOMEMLIMIT"))
			if c.set == "" {
				require.NoError(t, os.Unsetenv("GOMEMLIMIT"))
			}
			was := debug.SetMemoryLimit(before)
			t.Cleanup(func() { debug.SetMemoryLimit(was) })
			var lines []string
			log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
			setMemoryLimit(t.Context(), log, c.container)
			assert.Equal(t, c.want, debug.SetMemoryLimit(-1))
			assert.Contains(t, strings.Join(lines, "\n"), c.wantLog)
		})
	}
}
