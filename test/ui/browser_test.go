package ui

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// plugin is the plugin's file, which TestMain builds.
var plugin string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if _, err := exec.LookPath("chromium"); err != nil {
		fmt.Fprintln(os.Stderr, "the tests of the page need Chromium: apt-get install -y --no-install-recommends chromium")
		return 1
	}
	dir, err := os.MkdirTemp("", "overrule-ui-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	plugin = filepath.Join(dir, "kubectl-overrule")
	build := exec.Command("go", "build", "-o", plugin, "./cmd/kubectl-overrule")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the plugin: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// page is one run of the command, and a browser.
type page struct {
	t    *testing.T
	base string // the address without a path
	ctx  context.Context

	mu       sync.Mutex
	problems []string // exceptions and violations of the Content-Security-Policy
}

// open starts the command on manifests and opens its link in a new browser.
func open(t *testing.T, paths ...string) *page {
	t.Helper()
	link := serve(t, paths...)
	base, _, _ := strings.Cut(link, "/?")
	p := &page{t: t, base: base}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.ExecPath("chromium"), chromedp.WindowSize(1280, 900))
	allocator, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	p.ctx = ctx
	p.listen(ctx)
	p.run(log.Enable(), chromedp.Navigate(link))
	p.wait(`document.querySelector("main h1") !== null`)
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		assert.Empty(t, p.problems)
	})
	return p
}

// serve starts the command and returns its link.
func serve(t *testing.T, paths ...string) string {
	t.Helper()
	args := []string{"ui", "--no-browser"}
	for _, path := range paths {
		args = append(args, "-f", path)
	}
	cmd := exec.Command(plugin, args...)
	out, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	var link string
	for link == "" && lines.Scan() {
		if words := strings.Fields(lines.Text()); len(words) > 1 && words[0] == "Open" {
			link = words[1]
		}
	}
	require.NotEmpty(t, link, "the command prints a link")
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for lines.Scan() { // the command could not go on if its output were not read
		}
	}()
	t.Cleanup(func() {
		assert.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		<-drained
		assert.NoError(t, cmd.Wait(), "the command ends with exit code 0")
	})
	return link
}

// listen records what a tab complains about.
func (p *page) listen(ctx context.Context) {
	add := func(text string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.problems = append(p.problems, text)
	}
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			add(e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			if e.Entry.Source != log.SourceNetwork { // a 404 that a test asks for
				add(e.Entry.Text)
			}
		}
	})
}

// tab opens another tab of the same browser at a path.
func (p *page) tab(path string) *page {
	p.t.Helper()
	ctx, cancel := chromedp.NewContext(p.ctx)
	p.t.Cleanup(cancel)
	other := &page{t: p.t, base: p.base, ctx: ctx}
	other.visit(path)
	return other
}

func (p *page) run(actions ...chromedp.Action) {
	p.t.Helper()
	require.NoError(p.t, chromedp.Run(p.ctx, actions...))
}

// visit opens a path in the tab, and waits until its view is shown.
func (p *page) visit(path string) {
	p.t.Helper()
	p.run(chromedp.Navigate(p.base + path))
	p.wait(`document.querySelector("main h1") !== null`)
}

// eval returns the value of an expression.
func eval[T any](p *page, expression string) (out T) {
	p.t.Helper()
	p.run(chromedp.Evaluate(expression, &out))
	return out
}

// wait waits until an expression is true. The deadline is that of the tests.
func (p *page) wait(expression string) {
	p.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		var is bool
		err := chromedp.Run(p.ctx, chromedp.Evaluate("Boolean("+expression+")", &is))
		if err == nil && is {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s is not true on:\n%s", expression, p.text("body"))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (p *page) text(selector string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
}

// waitText waits until an element contains a text.
func (p *page) waitText(selector, text string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("document.querySelector(%q)?.innerText.includes(%q)", selector, text))
}

// copyDemo copies files of the demo to a new directory.
func copyDemo(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		data, err := os.ReadFile("../../examples/demo/" + name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	return dir
}
