// Package customresource validates, defaults and prunes objects as the API server does, by their
// CustomResourceDefinition. It uses the code of the API server, in the order of its
// handler and its strategy of custom resources.
//
// The files: kind and builtin (the schema), coerce (what is pruned and defaulted), validate
// and metadata (what is rejected), unknown (fields that were probably meant).
package customresource
