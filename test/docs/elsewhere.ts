/**
 * Why a test can't run a command of a page, one line for each: blocks marked `elsewhere`, command by command, as each
 * begins. What a command takes is looked at all the same (known-commands.ts).
 */
type Reasons = Readonly<Record<string, string>>;

const IMAGE =
  'fetches a base image; test/install/image.e2e.test.ts builds the same Containerfile with Podman and with Docker';
const RELEASE =
  'fetches a base image; release/release.integration.test.ts makes a release of a small one, and installs it';
const PROGRAM_IMAGE =
  'reads the cluster of a reader’s kubeconfig; test/install/image.e2e.test.ts runs shale and each of its processes from the image';
const EXECUTABLE = 'takes what a release has; release/cli/command-line.soak.test.ts runs the same';
const HELM = 'helm is in no package here; test/install/helm.integration.test.ts does the same where it is';
const CLEARED = 'is for after the last command of the page, when nothing of Shale is left to run';
const COSIGN = 'Debian 12 has no cosign; test/readers/supply-chain.integration.test.ts runs it where it is';
const KUBELET = 'needs a kubelet, which forwards ports; the sandbox has none';
const LOGS =
  'greps for a change that the reader looks for; test/install/kubectl-logs.integration.test.ts reads logs by kubectl';
const NEXT_REBOOT =
  'needs a node in layered mode, and a machine to log in to; test/e2e/next-reboot.e2e.test.ts reboots such a node';

const DEMO =
  'needs what make demo KEEP=1 leaves; workshop/sandbox/tour/steps/new-base.ts changes a base image';
const SCANNER =
  'no scanner is installed; test/e2e/vulnerabilities.integration.test.ts attaches reports to images';
const BUILT =
  'needs a pool with images; builder/steps/built-contents.test.ts compares images that builds made';
const CAPI =
  'needs two clusters, one of them with Cluster API; make capi-lab runs the same with its controllers';
const WALK = 'needs the change that the page describes';

export const ELSEWHERE: Readonly<Record<string, Reasons>> = {
  'CONTRIBUTING.md': {
    'make install-tests': 'installs packages on this machine',
    'npm test': 'runs tests, as the one that reads this page does',
    'make test': 'is what runs this test',
    'make format': 'writes to the checkout',
    'vitest run --project unit rollout/gates/kured.test.ts': WALK,
    'make check': WALK,
    'eval "$(bin/shale sandbox up)"': WALK,
    'kubectl annotate node worker-1 weave.works/kured-reboot-in-progress=2026-11-01T12:00:00Z': WALK,
    'kubectl apply -f examples/tour/karg.yaml': WALK,
    'bin/shale status worker-1': WALK,
    'bin/shale sandbox down': WALK,
  },
  'README.md': {
    'make demo': 'test/e2e runs the same tour',
    'kubectl get mcp,mc,mosc,mosb,mcn,machineconfigurations,nodes': 'needs what make demo KEEP=1 leaves',
    'kubectl apply -f examples/70-worker-kargs.yaml': 'needs what make demo KEEP=1 leaves',
    'kubectl get mcn -w': 'ends when the reader ends it',
    'kubectl describe mcn worker-0': 'needs what make demo KEEP=1 leaves',
    'make down': 'takes down the sandbox of this checkout, which is not the page’s',
    'kubectl apply -k manifests/base': 'test/install/server-side.integration.test.ts applies it',
    'kubectl apply -f - <<END': 'the sandbox has that pool; pages.test.ts holds it against its schema',
    'kubectl -n shale-system create configmap on-cluster-layering \\':
      'names a registry of the reader’s; shale enable writes the same',
  },
  'docs/how-to/cluster-api.md': {
    'kubectl --context management apply -k capi': CAPI,
    'kubectl --context management wait --for=condition=Discovered extensionconfig/shale': CAPI,
    'kubectl --context management label namespace default shale.dev/cluster-api=enabled': CAPI,
    'kubectl --context workload patch mcp worker --type merge \\': CAPI,
    'kubectl --context management apply -f workers-v2.yaml': CAPI,
    'kubectl --context management get machines': CAPI,
    'shale status worker --context workload': CAPI,
  },
  'docs/how-to/go-back.md': {
    "shale try -f examples/20-worker-chrony.yaml --for 10m --reason 'new NTP servers'":
      'waits until somebody confirms the change; test/e2e/try.integration.test.ts runs it and confirms',
  },
  'docs/how-to/kubelet-and-runtime.md': {
    'kubectl apply -f tuning.yaml':
      'needs nodes with a container runtime; operator/main.integration.test.ts applies both kinds',
    'kubectl wait --for=condition=Success kubeletconfig/web containerruntimeconfig/web':
      'needs what was applied before it',
  },
  'docs/engine.md': {
    'shale build --pool worker -f manifests/ --base "$BASE" --push registry.example.com/os/worker:latest --sign-by cosign.key --engine "$ENGINE"':
      'needs a container engine; builder/engine/engine-image.test.ts uses an image again by the key that signed its inputs',
  },
  'docs/how-to/base-images.md': {
    'shale plan -f new-base.yaml --packages':
      'names an image of the reader’s; cli/plan/read-changed-bases.test.ts compares the images of a plan',
    'shale plan -f new-base.yaml --packages -o markdown':
      'names an image of the reader’s; cli/plan/read-changed-bases.test.ts compares the images of a plan',
    'make demo KEEP=1': 'test/e2e runs the same tour',
    'REGISTRY=$(bin/shale sandbox status | awk \'$1 == "registry" {print $2}\')': DEMO,
    'STOCK=$(bin/shale sandbox status | awk \'$1 == "stock" {print $3}\')': DEMO,
    'bin/shale enable --image-repository "$REGISTRY/os/{pool}" --wait': DEMO,
    'kubectl patch mc 00-worker --type merge --patch "{\\"spec\\":{\\"osImageURL\\":\\"$STOCK\\"}}" --dry-run=client -o yaml > old-base.yaml':
      DEMO,
    'bin/shale plan -f old-base.yaml --packages': DEMO,
    'kubectl apply -f old-base.yaml': DEMO,
    'bin/shale status --wait --timeout 10m': DEMO,
    'kubectl get mosb -o jsonpath=\'{range .items[*]}{.status.contents.summary}{"\\n"}{end}\'': DEMO,
    'make down': 'takes down the sandbox of this checkout, which is not the page’s',
    'IMAGE=registry.example.com/os/base@sha256:…': SCANNER,
    'trivy image --format json --output report.json $IMAGE': SCANNER,
    'oras attach --artifact-type application/vnd.aquasec.trivy.report+json $IMAGE report.json': SCANNER,
    'shale plan -f new-base.yaml --fail-on severity=critical --fail-on kernel --fail-on removed-package=openssh-server':
      'names an image of the reader’s; test/cli/vulnerabilities.integration.test.ts fails plans by what they bring',
    'kubectl patch mcp worker --type merge --patch \'{"spec":{"shale":{"holds":{"acceptedBaseImages":["sha256:…"]}}}}\'':
      'names an image of the reader’s; rollout/controllers/held-vulnerabilities.test.ts accepts one',
    'shale history worker': BUILT,
    'shale explain worker-0': BUILT,
    "kubectl get machineosbuild NAME -o jsonpath='{.status.contents}'": BUILT,
  },
  'docs/how-to/new-nodes.md': {
    'shale build --pool worker -f manifests/ --base "$BASE" --push registry.example.com/os/worker:first --cluster-policies':
      'names an image of the reader’s; test/e2e/pre-built-image.e2e.test.ts builds one, and a pool takes it',
  },
  'docs/how-to/next-reboot.md': {
    'kubectl drain worker-1 --ignore-daemonsets': NEXT_REBOOT,
    "kubectl wait machineconfignode worker-1 --for=jsonpath='{.status.plan.nextBoot}'=true --timeout=10m":
      NEXT_REBOOT,
    'ssh worker-1 sudo systemctl reboot': NEXT_REBOOT,
    'kubectl wait machineconfignode worker-1 --for=condition=Updated --timeout=30m': NEXT_REBOOT,
    'kubectl uncordon worker-1': NEXT_REBOOT,
  },
  'docs/how-to/os-image-streams.md': {
    'kubectl patch mcp worker --type merge -p \'{"spec":{"osImageStream":{"name":"next"}}}\'':
      'names an image of the reader’s; machineconfig/render.test.ts renders the image of a stream',
    "kubectl get mcp worker -o jsonpath='{.status.osImageStream.name}'": 'needs what was patched before it',
  },
  'docs/how-to/pinned-images.md': {
    'kubectl apply -f pinned.yaml':
      'needs nodes with a container runtime; daemon/pinned-images.integration.test.ts has a stand-in for one',
    "kubectl get machineconfignodes -o custom-columns='NODE:.metadata.name,SETS:.status.pinnedImageSets'":
      'needs what was applied before it',
    'kubectl wait --for=condition=PinnedImageSetsProgressing=False machineconfignodes --all --timeout=30m':
      'needs what was applied before it',
    'kubectl patch mcp worker --type=merge -p \'{"spec":{"shale":{"prefetch":true}}}\'':
      'needs a paused pool with a new target; rollout/controllers/pool-rollout.test.ts stages one',
    'kubectl get mcp worker -o jsonpath=\'{.status.conditions[?(@.type=="Updating")].message}\'':
      'needs what was patched before it',
  },
  'docs/how-to/stuck-node.md': {
    'kubectl -n shale-system logs -l app.kubernetes.io/name=shale-daemon --prefix --tail -1 | grep "$CHANGE"':
      LOGS,
  },
  'charts/README.md': {
    'kubectl create namespace shale-system': HELM,
    'kubectl label namespace shale-system pod-security.kubernetes.io/enforce=privileged': HELM,
    'helm install shale CHART --namespace shale-system': HELM,
    'helm show crds CHART | kubectl apply --server-side -f -': HELM,
  },
  'docs/how-to/release.md': {
    'make release VERSION=0.1.0': RELEASE,
    'make release VERSION=0.1.0 REGISTRY=registry.example.com/os KEY=cosign.key': RELEASE,
    'kubectl apply --server-side -f install.yaml': RELEASE,
    'helm install shale oci://registry.example.com/os/charts/shale --version 0.1.0 --namespace shale-system':
      HELM,
    'tar -xzf shale-cli-0.1.0-linux-amd64.tar.gz shale': EXECUTABLE,
    './shale status': EXECUTABLE,
    'kubectl krew install --manifest=krew-shale.yaml --archive=shale-cli-0.1.0-linux-amd64.tar.gz':
      EXECUTABLE,
    'kubectl shale status': EXECUTABLE,
  },
  'docs/install.md': {
    'make image IMAGE=registry.example.com/shale:0.1.0': IMAGE,
    'make image-packages':
      'installs npm packages into the checkout; test/install/image.e2e.test.ts does it elsewhere',
    'make image IMAGE=registry.example.com/shale:0.1.0 BASE=registry.example.com/debian:bookworm': IMAGE,
    'make chart':
      'writes to the checkout, and installs what is missing there; test/install/chart.integration.test.ts makes it elsewhere',
    'helm install shale charts/dist/shale --namespace shale-system --create-namespace --set image=registry.example.com/shale:0.1.0':
      HELM,
    'kubectl delete machineconfignodes,poolrevisions --all': CLEARED,
    'kubectl delete namespace shale-system shale-builds': CLEARED,
    'kubectl delete namespace medik8s-leases': CLEARED,
  },
  'docs/live-page.md': {
    'make page': 'writes to the checkout; test/page builds it in the same way',
    'shale ui': 'ends when the reader ends it; test/page/ui-command.integration.test.ts runs it',
    'kubectl -n shale-system port-forward deployment/shale-page 8090': KUBELET,
  },
  'docs/reference/cli.md': {
    'podman run --rm --security-opt label=disable --volume "$PWD:/work:ro" --workdir /work registry.example.com/os/shale:0.1.0 \\':
      PROGRAM_IMAGE,
    'podman run --rm --security-opt label=disable --network host --user 0 --volume ~/.kube/config:/kubeconfig:ro \\':
      PROGRAM_IMAGE,
  },
  'docs/reference/operator.md': {
    'kubectl logs --namespace shale-system --prefix --tail -1 \\': LOGS,
  },
  'docs/supply-chain.md': {
    'cosign verify --key cosign.pub --insecure-ignore-tlog=true registry.example.com/os/worker:latest':
      COSIGN,
    'cosign verify-attestation --key cosign.pub --insecure-ignore-tlog=true --type slsaprovenance1 registry.example.com/os/worker:latest':
      COSIGN,
  },
};
