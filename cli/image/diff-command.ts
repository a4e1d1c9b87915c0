import { Command } from 'commander';
import { unusedReports } from '../../image/vulnerabilities/given-reports.ts';
import { reportWarnings } from '../change/report-warnings.ts';
import { exitCodes, UsageError } from '../command-line/exit-codes.ts';
import { outputFlag, print, TABLE_FORMATS } from '../command-line/output.ts';
import { ImageDiffOutput } from '../command-line/output-schemas.ts';
import { printAs } from '../command-line/print-as.ts';
import {
  type RegistryFlags,
  registryClient,
  rethrowUnavailable,
  withArchitecture,
  withRegistryFlags,
} from '../command-line/registry-flags.ts';
import {
  type ReportFlags,
  readReports,
  rethrowReportError,
  withReports,
} from '../command-line/report-flags.ts';
import { diffImages, hasChanges, type ImageDiff } from './image-diff.ts';
import { imageDiffMarkdown, imageDiffText } from './image-diff-text.ts';
import { namedReference } from './named-reference.ts';
import { READING_DEADLINE_MS, readBoth } from './read-contents.ts';

interface DiffFlags extends RegistryFlags, ReportFlags {
  readonly output: string;
  readonly architecture: string;
}

const EXAMPLES = `
Examples:
  shale image diff r.example.com/os/base:41 r.example.com/os/base:42     what a new base image brings
  shale image diff r.example.com/os/worker@sha256:… r.example.com/os/worker@sha256:… -o markdown`;

/** `shale image diff`: what is in another image. Exits like `shale diff`. */
export function imageDiffCommand(): Command {
  const command = new Command('diff')
    .description(
      'Show which packages, kernels, units, users and known vulnerabilities differ between two images; reads the layers that they do not share, and the reports that are attached to them.',
    )
    .argument('<from>', 'host[:port]/repository[:tag][@digest]')
    .argument('<to>', 'the image that takes its place')
    .addOption(outputFlag(...TABLE_FORMATS, 'markdown'))
    .addHelpText('after', EXAMPLES);
  return withArchitecture(withRegistryFlags(withReports(command))).action(diffTwo);
}

async function diffTwo(from: string, to: string, flags: DiffFlags): Promise<void> {
  const images = [from, to].map((name) => ({ name, reference: namedReference(name) }));
  const given = await readReports(flags);
  const client = await registryClient(flags);
  const signal = AbortSignal.timeout(READING_DEADLINE_MS);
  const [before, after] = images;
  if (before === undefined || after === undefined) return;
  const { diff, images: compared } = await readBoth(client, [before, after], flags, signal)
    .then((both) => diffImages(client, both, { architecture: flags.architecture, given }, signal))
    .catch(rethrowReportError)
    .catch(rethrowUnavailable);
  reportWarnings(unusedReports(given, compared).map((file) => `${file} is about neither image: not used`));
  show(diff, flags.output);
  if (hasChanges(diff)) process.exitCode = exitCodes.failed;
  else if (diff.unknown.length > 0) {
    throw new UsageError('no differences were found, but not everything could be compared');
  }
}

function show(diff: ImageDiff, format: string): void {
  if (format === 'table')
    print(imageDiffText(diff, process.stdout.isTTY ? process.stdout.columns : undefined));
  else if (format === 'markdown') print(imageDiffMarkdown(diff));
  else printAs(format, ImageDiffOutput, diff);
}
