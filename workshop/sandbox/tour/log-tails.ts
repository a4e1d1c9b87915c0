import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import type { LogTail } from './report.ts';

const LINES = 12;

/**
 * @param directory of the pods' logs.
 * @param workloads Deployments' names, each for the youngest of its pods (`NAME-3`), or names of DaemonSets' pods.
 * @returns the last lines of those that have written any, in the order in which they are asked for.
 */
export async function readLogTails(directory: string, workloads: readonly string[]): Promise<LogTail[]> {
  const names = await readdir(directory);
  const tails = workloads.map(async (workload): Promise<LogTail[]> => {
    const file = await youngest(
      names.filter((name) => isLogOf(name, workload)).map((name) => path.join(directory, name)),
    );
    const text = file === undefined ? '' : await readFile(file, 'utf8');
    return file === undefined || text === ''
      ? []
      : [{ file, lines: text.trimEnd().split('\n').slice(-LINES) }];
  });
  return (await Promise.all(tails)).flat();
}

function isLogOf(name: string, workload: string): boolean {
  return name.startsWith(workload) && /^(-\d+)?\.log$/.test(name.slice(workload.length));
}

async function youngest(files: readonly string[]): Promise<string | undefined> {
  const dated = await Promise.all(files.map(async (file) => ({ file, at: (await stat(file)).mtimeMs })));
  return dated.toSorted((a, b) => b.at - a.at)[0]?.file;
}
