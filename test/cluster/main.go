// Command cluster is a Kubernetes API server and its etcd in one binary, for tests.
//
//	cluster etcd FLAGS...            what `etcd FLAGS...` does
//	cluster kube-apiserver FLAGS...  what `kube-apiserver FLAGS...` does
package main

import (
	"fmt"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "etcd":
			etcdmain.Main(os.Args[1:])
			return
		case "kube-apiserver":
			os.Args = os.Args[1:]
			os.Exit(cli.Run(app.NewAPIServerCommand()))
		}
	}
	fmt.Fprintln(os.Stderr, "usage: cluster etcd|kube-apiserver FLAGS...")
	os.Exit(2)
}
