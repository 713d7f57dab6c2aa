// Command release makes of binaries what people install: an image for several
// platforms, and archives of the kubectl plugin with a manifest for krew. It is
// a module of its own, so that nothing else depends on its libraries.
package main
