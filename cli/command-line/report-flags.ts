import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { errorMessage } from '../../api/error-message.ts';
import type { GivenReport } from '../../image/vulnerabilities/given-reports.ts';
import { readReport } from '../../image/vulnerabilities/read-report.ts';
import { ReportError } from '../../image/vulnerabilities/report.ts';
import { UsageError } from './exit-codes.ts';

export interface ReportFlags {
  readonly vulnerabilities: readonly string[];
}

/** @returns the command with `--vulnerabilities`, which names files with reports. */
export function withReports(command: Command): Command {
  return command.option(
    '--vulnerabilities <[image=]file>',
    'a report of vulnerabilities (CycloneDX, SARIF, Trivy, Grype or OpenVEX in JSON) beside those attached to the images, and the image that it is about, if it does not name it; repeatable',
    (file: string, files: readonly string[]) => [...files, file],
    [],
  );
}

/** @throws CommandError for a file that can't be read or is no report. */
export async function readReports({ vulnerabilities }: ReportFlags): Promise<readonly GivenReport[]> {
  return Promise.all(vulnerabilities.map(readOne));
}

/** Names of images have no `=`; those of files may. */
const NAMED = /^([A-Za-z0-9.:/@_-]+)=(.+)$/;

async function readOne(text: string): Promise<GivenReport> {
  const [, image, file = text] = NAMED.exec(text) ?? [];
  try {
    return { report: readReport(await readFile(file), file), image };
  } catch (cause) {
    const message =
      cause instanceof ReportError ? cause.message : `${file}: can't be read: ${errorMessage(cause)}`;
    throw new UsageError(message, { cause });
  }
}

/** As a usage error: the report is not about the image that the flag names. @throws CommandError, or the error */
export function rethrowReportError(error: unknown): never {
  if (error instanceof ReportError) throw new UsageError(error.message, { cause: error });
  throw error;
}
