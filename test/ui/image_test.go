package ui

import (
	"flag"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/images/ui.png")

// The docs show the page with the demo. The image is written with -update.
func TestImageOfTheDocs(t *testing.T) {
	const file = "../../docs/images/ui.png"
	if *update {
		p := open(t, copyDemo(t, demo...))
		p.run(chromedp.EmulateViewport(1280, 1150))
		p.visit("/o/HTTPRoute/app/toystore")
		p.wait(`document.querySelector(".picture div").shadowRoot?.querySelector("svg")`)
		p.run(chromedp.Evaluate(`document.querySelector(".bottom").hidden = true`, nil)) // it names a temporary directory
		var image []byte
		p.run(chromedp.CaptureScreenshot(&image))
		require.NoError(t, os.WriteFile(file, image, 0o600))
	}
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Less(t, info.Size(), int64(300<<10))
}
