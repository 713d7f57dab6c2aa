#!/usr/bin/env bash
# Builds the named parts of a Kubernetes control plane (etcd, kube-apiserver,
# kubectl, kube-controller-manager) from the versions that this module pins.
# usage: build.sh OUTDIR NAME...
set -euo pipefail

out=$1
shift
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")"

kube=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<<"${kube#v}"
ldflags="-s -w"
for pkg in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	ldflags+=" -X $pkg.gitVersion=$kube -X $pkg.gitMajor=$major -X $pkg.gitMinor=$minor"
done

for name in "$@"; do
	case $name in
	etcd) pkg=go.etcd.io/etcd/server/v3 took="10 seconds" ;;
	kube-apiserver) pkg=k8s.io/kubernetes/cmd/kube-apiserver took="4 minutes" ;;
	kubectl) pkg=k8s.io/kubernetes/cmd/kubectl took="1 minute" ;;
	kube-controller-manager) pkg=k8s.io/kubernetes/cmd/kube-controller-manager took="1 minute" ;;
	*)
		echo "build.sh: $name is not a part of the control plane that this module pins" >&2
		exit 2
		;;
	esac
	# One stamp for each binary: a change of the pinned versions rebuilds it.
	stamp="$out/.$name.$(cat go.mod build.sh | sha256sum | cut -c1-16)"
	if [ -x "$out/$name" ] && [ -e "$stamp" ]; then
		continue
	fi
	start=$SECONDS
	echo "building $name (about $took on two cores when nothing is cached)" >&2
	# go run, unlike go build, keeps the linked program in Go's cache, for each clone.
	CGO_ENABLED=0 go run -trimpath -ldflags "$ldflags" -exec cp "$pkg" "$out/$name"
	rm -f "$out/.$name".*
	touch "$stamp"
	echo "built $name in $((SECONDS - start)) s" >&2
done
