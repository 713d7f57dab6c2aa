//go:build e2e

package e2e

import (
	"maps"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"overrule.dev/overrule/test/env"
)

// Both users may write every object; privileged may also override policies.
const (
	unprivileged = "bypass-developer"
	privileged   = "bypass-engineer"
)

// TestBypass runs the tables of docs/guardrails.md: each row is an attempt to
// bypass an override, or a write that must stay possible, in its own namespaces.
// One server evaluates them all.
func TestBypass(t *testing.T) {
	c := shared(t)
	c.grantTestUsers(t)
	c.defineKinds(t)
	c.start(t)
	c.readKinds(t)
	c.applyPageManifests(t)
	t.Run("rows", func(t *testing.T) {
		for name, r := range selectedRows(t) {
			t.Run(name, func(t *testing.T) {
				// Dry runs on cluster-wide objects come first and alone: they
				// also change the effective policies of other rows.
				if w, ok := r.(bypass); !ok || !w.dry {
					t.Parallel()
				}
				r.run(t, c.testNamespaces(name))
			})
		}
	})
	requireDocumentedRows(t)
}

// row is a row of a table.
type row interface {
	run(t *testing.T, g testNamespaces)
}

// tables are the rows by their names in docs/guardrails.md.
var tables = []map[string]row{policyRows, routeRows, gatewayRows, namespaceRows, kindRows, allowedRows, sequenceRows, duplicateRows, requestRows}

// allRows returns the rows of all tables.
func allRows(t *testing.T) map[string]row {
	t.Helper()
	out := make(map[string]row)
	for _, table := range tables {
		for name, r := range table {
			require.NotContains(t, out, name)
			out[name] = r
		}
	}
	return out
}

// selectedRows returns all rows or, with -short, every fourth row of each table.
func selectedRows(t *testing.T) map[string]row {
	t.Helper()
	if !testing.Short() {
		return allRows(t)
	}
	out := make(map[string]row)
	for _, table := range tables {
		for i, name := range slices.Sorted(maps.Keys(table)) {
			if i%4 == 0 {
				out[name] = table[name]
			}
		}
	}
	return out
}

// grantTestUsers creates the two users and their rights.
func (c *cluster) grantTestUsers(t *testing.T) {
	t.Helper()
	normal := rbacv1.PolicyRule{
		APIGroups: []string{"*"}, Resources: []string{"*"},
		Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
	}
	override := rbacv1.PolicyRule{
		APIGroups: []string{"kuadrant.io", "policies.example.com"}, Resources: []string{"*"}, Verbs: []string{"override"},
	}
	c.MustAddUser(t, unprivileged, nil, normal)
	c.MustAddUser(t, privileged, nil, normal, override)
}

// bypass is a write that would make an override ineffective: unprivileged is
// denied, privileged gets a warning.
type bypass struct {
	objects string
	write   command
	// code of the denial, and other parts of its message.
	code     string
	contains []string
	// instead is a write that the privileged user makes, where the write itself
	// is denied to everyone.
	instead *command
	// warning that the privileged user gets; default: "would not".
	warning string
	// dry uses dry runs only, for writes that would break the other rows.
	dry bool
}

func (w bypass) run(t *testing.T, g testNamespaces) {
	succeed(t, g.apply(w.objects))
	g.awaitDenial(t, w.write)
	tried := w.write
	if w.dry {
		tried = w.write.dryRun()
	}
	requireDenial(t, g.runAs(unprivileged, tried), w.code, w.contains...)
	if w.instead != nil {
		tried = *w.instead
	}
	got := g.runAs(privileged, tried)
	succeed(t, got)
	if w.instead == nil {
		assert.Regexp(t, "Warning: .*"+regexp.QuoteMeta(orDefault(w.warning, "would no longer")), got.Stderr)
	}
}

// permitted is a write that any user may make.
type permitted struct {
	objects string
	write   command
	// probe is a deletion that is denied once the server has observed the
	// objects; default: deletion of the gateway's policy.
	probe *command
}

func (f permitted) run(t *testing.T, g testNamespaces) {
	succeed(t, g.apply(f.objects))
	held := f.probe
	if held == nil {
		w := remove("INFRA", "authpolicy/gw-auth")
		held = &w
	}
	g.awaitDenial(t, *held)
	got := g.runAs(unprivileged, f.write)
	succeed(t, got)
	assert.NotContains(t, got.Stderr, "would no longer")
}

// sequence is a row with several steps.
type sequence func(t *testing.T, g testNamespaces)

func (s sequence) run(t *testing.T, g testNamespaces) { s(t, g) }

// command is a call of kubectl. INFRA and APP stand for the namespaces of the
// row.
type command struct {
	stdin string
	args  []string
	// dry are the arguments of the dry run; nil adds --dry-run=server.
	dry []string
}

func kubectl(args ...string) command { return command{args: args} }

func apply(manifest string, args ...string) command {
	return command{stdin: manifest, args: append([]string{"apply", "-f", "-"}, args...)}
}

func remove(namespace, object string) command {
	return kubectl("-n", namespace, "delete", object, "--timeout=2m")
}

// patch returns a merge patch of an object, in YAML.
func patch(namespace, object, patch string) command {
	return kubectl("-n", namespace, "patch", object, "--type=merge", "-p", patch)
}

// edit returns a JSON patch of an object.
func edit(namespace, object, patch string) command {
	return kubectl("-n", namespace, "patch", object, "--type=json", "-p", patch)
}

func (w command) dryRun() command {
	if w.dry != nil {
		return command{stdin: w.stdin, args: w.dry}
	}
	return command{stdin: w.stdin, args: append(slices.Clone(w.args), "--dry-run=server")}
}

// runAs runs a command as a user.
func (g testNamespaces) runAs(user string, w command) env.Result {
	args := []string{"--as", user}
	for _, a := range w.args {
		args = append(args, g.expand(a))
	}
	return g.c.KubectlWith(g.expand(w.stdin), args...)
}

// awaitDenial waits until the server has observed the objects, so that a dry run
// of the command is denied.
func (g testNamespaces) awaitDenial(t *testing.T, w command) {
	t.Helper()
	var got env.Result
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if got = g.runAs(unprivileged, w.dryRun()); denialMessage.MatchString(got.Stderr) {
			return
		}
	}
	require.Fail(t, "a dry run is not denied", "%v: %s%s", w.args, got.Stdout, got.Stderr)
}

var denialMessage = regexp.MustCompile(`admission webhook "(\w+\.)?validate\.overrule\.dev" denied the request: `)

// requireDenial requires that Overrule denied a write with this reason code, and
// that the message names the command that shows who is allowed, where someone is.
func requireDenial(t *testing.T, got env.Result, code string, says ...string) {
	t.Helper()
	require.Equal(t, 1, got.Code, got.Stdout+got.Stderr)
	assert.Regexp(t, denialMessage, got.Stderr)
	assert.Contains(t, got.Stderr, code+": ")
	if code == "OverrideRemoved" || code == "OverrideEvaded" {
		says = append(says, "kubectl auth can-i override ")
	}
	for _, part := range says {
		assert.Contains(t, got.Stderr, part)
	}
}

func orDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
