import path from 'node:path';
import { execa } from 'execa';

export const root = path.join(import.meta.dirname, '../..');

export interface ShaleRun {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number | undefined;
}

/** Runs shale as a person would, in the project's folder. */
export async function shale(
  args: readonly string[],
  { input, env }: { readonly input?: string; readonly env?: Record<string, string> } = {},
): Promise<ShaleRun> {
  const { stdout, stderr, exitCode } = await execa(path.join(root, 'bin/shale'), args, {
    cwd: root,
    reject: false,
    ...(input === undefined ? {} : { input }),
    ...(env === undefined ? {} : { env }),
  });
  return { stdout, stderr, exitCode };
}

/** @returns a MachineConfig of worker's as JSON, which is YAML too. */
export function machineConfig(name: string, config: object, more: object = {}): string {
  return JSON.stringify({
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name, labels: { 'machineconfiguration.openshift.io/role': 'worker' } },
    spec: { config: { ignition: { version: '3.4.0' }, ...config }, ...more },
  });
}
