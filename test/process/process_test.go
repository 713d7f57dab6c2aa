package process

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func shell(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start(Spec{Path: "/bin/sh", Args: []string{"-c", script}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Signal(syscall.SIGKILL) })
	return p
}

func logged(t *testing.T, p *Process, want string) {
	t.Helper()
	require.Eventually(t, func() bool { return p.Log() == want }, time.Minute, time.Millisecond, "the log is %q", p.Log())
}

func TestStopEndsGracefully(t *testing.T) {
	p := shell(t, `trap 'echo bye; exit 3' TERM; echo hello; while :; do sleep 0.01; done`)
	logged(t, p, "hello\n")
	assert.NoError(t, p.Err(), "it is still running")
	assert.Equal(t, -1, p.Code(), "it is still running")

	require.NoError(t, p.Stop())

	assert.Equal(t, "hello\nbye\n", p.Log())
	var exit *exec.ExitError
	require.ErrorAs(t, p.Err(), &exit)
	assert.Equal(t, 3, p.Code())
	assert.NoError(t, p.Stop(), "stopping twice is allowed")
}

func TestStopKillsAProgramThatDoesNotEnd(t *testing.T) {
	p := shell(t, `trap '' TERM; echo hello; while :; do sleep 0.01; done`)
	logged(t, p, "hello\n")

	assert.ErrorIs(t, p.stop(time.Millisecond), ErrKilled)
	assert.ErrorIs(t, syscall.Kill(p.PID(), 0), syscall.ESRCH, "no process is left")
}

func TestAProgramIsKilledWithItsChildren(t *testing.T) {
	p := shell(t, `trap '' TERM; sleep 600 & echo $!; wait`)
	require.Eventually(t, func() bool { return p.Log() != "" }, time.Minute, time.Millisecond)
	child, err := strconv.Atoi(strings.TrimSpace(p.Log()))
	require.NoError(t, err)

	require.ErrorIs(t, p.stop(time.Millisecond), ErrKilled)

	gone := func() bool { return errors.Is(syscall.Kill(child, 0), syscall.ESRCH) || zombie(child) }
	assert.Eventually(t, gone, time.Minute, time.Millisecond)
}

// zombie reports whether a process has stopped and its parent has not waited for
// it.
func zombie(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func TestBothStreamsAreKept(t *testing.T) {
	p := shell(t, `echo out; echo err >&2`)
	<-p.Done()
	assert.Equal(t, "out\nerr\n", p.Log())
	assert.NoError(t, p.Err())
}

func TestTheTailOfALogIsItsLastLines(t *testing.T) {
	p := shell(t, `i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done`)
	<-p.Done()
	assert.Regexp(t, `^\.\.\.\nline \d+\n(.*\n)+line 2999\n$`, p.Tail())
	assert.Less(t, len(p.Tail()), len(p.Log()))
	assert.Equal(t, "short\n", (&Process{log: logOf("short\n")}).Tail())
}

func logOf(s string) *log {
	l := &log{}
	_, _ = l.Write([]byte(s))
	return l
}

func TestAProgramThatDoesNotExistIsAnError(t *testing.T) {
	_, err := Start(Spec{Path: filepath.Join(t.TempDir(), "nothing")})
	assert.ErrorContains(t, err, "start nothing: ")
}
