import path from 'node:path';
import type { Reporter, TestCase, TestModule, TestRunEndReason } from 'vitest/node';

/** Failures whose logs are printed; with more than that, a person begins at the first. */
const LOGS = 3;

/** Prints, after everything else, what a person needs to look into a failure: logs, and how to run that case alone. */
export default class FailureReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], _errors: readonly unknown[], reason: TestRunEndReason): void {
    if (reason !== 'failed') return;
    const cases = modules.flatMap((module) => [...module.children.allTests('failed')]);
    const lines = [...cases.slice(0, LOGS).flatMap(logsOf), ...howToRepeat(modules, cases)];
    process.stderr.write(`\n${lines.join('\n')}\n`);
  }
}

function logsOf(test: TestCase): string[] {
  const { logs } = test.meta() as { logs?: string };
  return logs === undefined ? [] : [`=== ${test.fullName}`, logs];
}

function howToRepeat(modules: readonly TestModule[], cases: readonly TestCase[]): string[] {
  const alone = cases.map((test) => `${command(test.module)} -t '${pattern(test.fullName)}'`);
  const files = new Set(cases.map(({ module }) => module));
  const broken = modules.filter((module) => !files.has(module) && module.state() === 'failed').map(command);
  return ['To run what failed alone:', ...new Set([...alone, ...broken])];
}

function command({ project, moduleId }: TestModule): string {
  const sudo = process.env['SUDO_USER'] === undefined ? '' : 'sudo -E ';
  const set = ['SHALE_SEED', 'SHALE_SOAK'].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [`${name}=${value} `];
  });
  const file = path.relative(process.cwd(), moduleId);
  return `  ${set.join('')}${sudo}npx vitest run --project ${project.name} ${file}`;
}

/** @returns what -t takes: a regular expression, in the shell's single quotes. */
function pattern(name: string): string {
  const text = name.split(' > ').join(' ');
  return `^${text.replace(/[$()*+.?[\\\]^{|}]/g, '\\$&').replaceAll("'", '.')}$`;
}
