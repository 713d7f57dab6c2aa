package ui

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var demo = []string{"00-cluster.yaml", "10-gateway-policies.yaml", "20-route-auth.yaml", "31-route-limits.yaml"}

// An application developer asks what holds on a route, why a rule has no effect, whom to
// ask, and what a change would do.
func TestNewUser(t *testing.T) {
	dir := copyDemo(t, demo...)
	p := open(t, dir)
	assert.NotContains(t, eval[string](p, "location.href"), "token")
	assert.Contains(t, p.text("main"), "app/toystore")

	p.run(chromedp.SendKeys("#search", "toystore.example"))
	p.waitText("#results-more", "1 result") // not those of a part of the word
	p.run(chromedp.SendKeys("#search", kb.ArrowDown+kb.Enter))
	p.waitText("h1", "app/toystore")
	assert.Equal(t, "/o/HTTPRoute/app/toystore", eval[string](p, "location.pathname"))
	assert.Contains(t, p.text(".losses"), "of app/toystore-auth has no effect: replaced by the overrides of infra/gw-auth. Ask the owners of namespace infra.")
	assert.Contains(t, eval[string](p, `document.querySelector(".losses del").textContent`), "login.toystore.example.com")

	// The picture is drawn with its style, and its boxes lead to views.
	p.wait(`document.querySelector(".picture div").shadowRoot?.querySelector("a[href='/o/Gateway/infra/edge']")`)
	assert.NotEqual(t, "rgb(0, 0, 0)", eval[string](p, `getComputedStyle(document.querySelector(".picture div").shadowRoot.querySelector(".target rect")).fill`))
	p.run(chromedp.Evaluate(`document.querySelector(".picture div").shadowRoot.querySelector("a[href='/o/Gateway/infra/edge']").dispatchEvent(new MouseEvent("click", {bubbles: true, composed: true, cancelable: true}))`, nil))
	p.waitText("h1", "infra/edge")
	p.run(chromedp.NavigateBack())
	p.waitText("h1", "app/toystore")

	p.run(chromedp.Click(`a[href="/o/AuthPolicy.kuadrant.io/app/toystore-auth"]`))
	p.waitText("h1", "app/toystore-auth")
	assert.Contains(t, p.text("main"), "PartiallyEnforced")

	p.run(chromedp.Click(`a.button`))
	p.waitText("h1", "Try a change")
	manifest, err := os.ReadFile("../../examples/demo/21-admin-auth-unset.yaml")
	require.NoError(t, err)
	p.run(chromedp.SetValue("#manifest", string(manifest)), chromedp.Click("form button"))
	p.waitText("#verdict", "Denied: CREATE AuthPolicy app/toystore-admin-auth")
	assert.Contains(t, p.text("#verdict"), "UnsetOverride")

	p.run(chromedp.NavigateBack())
	p.waitText("h1", "app/toystore-auth")

	// The page follows the files.
	file := filepath.Join(dir, "10-gateway-policies.yaml")
	policies, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(policies), "name: gw-auth", "name: new-auth", 1)), 0o600))
	p.waitText("main", "infra/new-auth")
}

func TestTabsShareOneStream(t *testing.T) {
	dir := copyDemo(t, demo...)
	p := open(t, dir)
	tabs := []*page{p, p.tab("/o/HTTPRoute/app/toystore"), p.tab("/o/AuthPolicy.kuadrant.io/app/toystore-auth")}
	for _, tab := range tabs {
		tab.wait(`document.documentElement.dataset.version === "1"`)
		assert.Zero(t, eval[int](tab, `performance.getEntriesByName(location.origin + "/api/events").length`), "the tab has a stream of its own")
	}
	targets, err := chromedp.Targets(p.ctx)
	require.NoError(t, err)
	workers := 0
	for _, target := range targets {
		if target.Type == "shared_worker" {
			workers++
		}
	}
	assert.Equal(t, 1, workers)
	require.NoError(t, os.Remove(filepath.Join(dir, "20-route-auth.yaml")))
	for _, tab := range tabs {
		tab.wait(`document.documentElement.dataset.version === "2"`)
	}
}

func TestHalfEditedManifest(t *testing.T) {
	dir := copyDemo(t, demo...)
	p := open(t, dir)
	p.visit("/o/HTTPRoute/app/toystore")
	file := filepath.Join(dir, "20-route-auth.yaml")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, append(data, "  broken: [\n"...), 0o600))
	p.waitText("#banner", "Not up to date since")
	assert.Contains(t, p.text("#banner"), "20-route-auth.yaml:")
	assert.Contains(t, p.text("main"), "app/toystore-auth", "the last state is shown")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	p.wait(`document.getElementById("banner").hidden`)
}

func TestNotFound(t *testing.T) {
	p := open(t, copyDemo(t, demo...))
	p.visit("/nothing/here")
	assert.Contains(t, p.text("main"), "There is no such page")
	p.visit("/o/HTTPRoute/app/none")
	assert.Contains(t, p.text("main"), "HTTPRoute app/none not found")
}

const markup = `<img src=x onerror=window.attacked=1>`

// Text of objects is shown as it is, and is never HTML.
func TestMarkupInObjects(t *testing.T) {
	dir := copyDemo(t, "00-cluster.yaml", "10-gateway-policies.yaml")
	manifest := fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata: {name: infra2, labels: {team: %[1]q}}
---
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: app, name: %[1]q, annotations: {a: %[1]q}}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}
  rules:
    authentication:
      sso: {jwt: {issuerUrl: %[1]q}}
      %[1]q: {x: %[1]q}
`, markup)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "markup.yaml"), []byte(manifest), 0o600))
	p := open(t, dir)
	for _, path := range []string{"/o/HTTPRoute/app/toystore", "/search?q=" + "%3Cimg", "/violations", "/change", "/o/X/" + "%3Cimg%20src=x%20onerror=window.attacked=1%3E", "/request?url=%3Cimg%20src=x%3E"} {
		p.visit(path)
		assert.Zero(t, eval[int](p, `document.querySelectorAll("main img, main script").length`), path)
		assert.True(t, eval[bool](p, "window.attacked === undefined"), path)
	}
	p.visit("/o/HTTPRoute/app/toystore")
	assert.Contains(t, p.text("main"), markup)
	p.run(chromedp.SendKeys("#search", "onerror"))
	p.waitText("#results", markup)
	p.visit("/change")
	p.run(chromedp.SetValue("#manifest", manifest), chromedp.Click("form button"))
	p.wait(`document.getElementById("verdict").innerText.includes("onerror")`)
	assert.True(t, eval[bool](p, "window.attacked === undefined"))
}

// slash presses "/" as a keyboard does: by one event, whose text is not entered if the
// page handles it.
var slash = chromedp.ActionFunc(func(ctx context.Context) error {
	down := input.DispatchKeyEvent(input.KeyDown).WithKey("/").WithCode("Slash").WithText("/")
	up := input.DispatchKeyEvent(input.KeyUp).WithKey("/").WithCode("Slash")
	return errors.Join(down.Do(ctx), up.Do(ctx))
})

// Everything works without a mouse.
func TestKeyboard(t *testing.T) {
	p := open(t, copyDemo(t, demo...))
	p.run(slash)
	assert.Equal(t, "search", eval[string](p, "document.activeElement.id"))
	p.run(chromedp.KeyEvent("gw-auth"))
	p.waitText("#results", "infra/gw-auth")
	assert.Equal(t, "gw-auth", eval[string](p, `document.getElementById("search").value`))
	p.run(chromedp.KeyEvent(kb.ArrowDown))
	assert.Equal(t, "result-0", eval[string](p, `document.activeElement.getAttribute("aria-activedescendant")`))
	p.run(chromedp.KeyEvent(kb.Enter))
	p.waitText("h1", "infra/gw-auth")
	assert.Equal(t, "H1", eval[string](p, "document.activeElement.tagName"))
	assert.Contains(t, eval[string](p, "document.title"), "AuthPolicy infra/gw-auth")
	p.run(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab))
	assert.True(t, eval[bool](p, `document.activeElement.matches("main a:focus-visible")`))
	p.run(slash, chromedp.KeyEvent("toy"))
	p.wait(`!document.getElementById("results-box").hidden`)
	p.run(chromedp.KeyEvent(kb.Escape))
	assert.True(t, eval[bool](p, `document.getElementById("results-box").hidden`))
	p.run(chromedp.KeyEvent(kb.Enter))
	p.waitText("h1", "Search")
}

//go:embed testdata/axe-core-4.10.3.min.js
var axe string

// axe-core finds no violation, in light and dark, wide and narrow.
func TestAccessibility(t *testing.T) {
	p := open(t, copyDemo(t, append(demo, "22-route-auth-api-key.yaml")...))
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 400} {
			p.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}), chromedp.EmulateViewport(width, 900))
			for _, path := range []string{"/", "/o/HTTPRoute/app/toystore", "/o/AuthPolicy.kuadrant.io/app/toystore-auth", "/request?url=http://toystore.example.com/admin", "/change", "/violations", "/search?q=app", "/nothing"} {
				p.visit(path)
				p.run(chromedp.Evaluate(axe, nil))
				var found []string
				p.run(chromedp.Evaluate(`axe.run().then((r) => r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html + " " + n.failureSummary).join("; ")))`, &found,
					awaitPromise))
				assert.Empty(t, found, "%s, %s, %d px", path, scheme, width)
				assert.LessOrEqual(t, eval[int](p, "document.documentElement.scrollWidth"), int(width), "%s does not scroll sideways", path)
			}
		}
	}
}

func awaitPromise(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
