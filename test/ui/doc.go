// Package ui holds the tests of the page of "kubectl overrule ui" in Chromium.
package ui
