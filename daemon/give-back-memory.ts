/**
 * Gives back what work has left behind: V8 collects it when it needs room, for which a daemon that waits has no need for
 * days. Nothing happens where Node.js runs without `--expose-gc` (manifests/base/daemon.yaml has it).
 */
export function giveBackMemory(): void {
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
