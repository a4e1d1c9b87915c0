import type { Logger } from 'pino';
import { shellObstacle } from './shell.ts';
import { engineObstacle, type StartedEngine, startEngine } from './start-engine.ts';

/** Which container engine a sandbox's builder has, or why it has none. */
export type ClusterEngine = { readonly kind: string } | { readonly missing: string };

export interface StartedClusterEngine {
  readonly shown: ClusterEngine;
  readonly started: StartedEngine | undefined;
}

/**
 * Starts Podman, or Docker where that is not there, for the sandbox's builder. A sandbox without one is whole but for
 * images that need commands to run.
 */
export async function startClusterEngine(dir: string, log: Logger): Promise<StartedClusterEngine> {
  const shell = shellObstacle();
  if (shell !== undefined) return none(shell);
  const obstacles: string[] = [];
  for (const kind of ['podman', 'docker'] as const) {
    const obstacle = engineObstacle(kind);
    if (obstacle !== undefined) {
      obstacles.push(obstacle);
      continue;
    }
    try {
      return { shown: { kind }, started: await startEngine({ kind, dir }) };
    } catch (error) {
      log.warn({ err: error, kind }, 'container engine did not start');
      obstacles.push(`${kind} did not start`);
    }
  }
  return none(obstacles.join('; '));
}

function none(missing: string): StartedClusterEngine {
  return { shown: { missing }, started: undefined };
}
