/**
 * Cluster API has cloud-init take its whole config for a template of Jinja (bootstrap/kubeadm/pkg/cloudinit,
 * cloudConfigHeader): what is between such brackets is another text on each machine, as is what it means.
 */
const BRACKETS = /\{[{%#]/;

/** @returns why a text of a KubeadmConfig is not what machines get, as a clause; undefined where it is. */
export function templateProblem(text: string): string | undefined {
  return BRACKETS.test(text) ? 'it has {{, {% or {#, which cloud-init replaces on each machine' : undefined;
}
