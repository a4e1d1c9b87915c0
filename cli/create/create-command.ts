import { readFile } from 'node:fs/promises';
import { Command, Option } from 'commander';
import { fileErrorMessage } from '../../api/error-message.ts';
import { parseMachineConfig } from '../../machineconfig/parse-machine-config.ts';
import { formatProblem } from '../../machineconfig/problem.ts';
import { reportWarnings } from '../change/report-warnings.ts';
import { CommandError, exitCodes } from '../command-line/exit-codes.ts';
import { outputFlag } from '../command-line/output.ts';
import { RenderOutput } from '../command-line/output-schemas.ts';
import { printAs } from '../command-line/print-as.ts';
import {
  type DropInFlag,
  type FileFlag,
  parseDropInFlag,
  parseFileFlag,
  parseUnitFlag,
  type UnitFlag,
} from './content-flags.ts';
import { composeMachineConfig, type NewMachineConfig, neitherEnabledNorDisabled } from './machine-config.ts';

interface CreateFlags {
  readonly role: string;
  readonly file: readonly FileFlag[];
  readonly unit: readonly UnitFlag[];
  readonly dropIn: readonly DropInFlag[];
  readonly enable: readonly string[];
  readonly disable: readonly string[];
  readonly mask: readonly string[];
  readonly karg: readonly string[];
  readonly output: string;
}

const EXAMPLES = `
Examples:
  shale create machineconfig 50-worker-chrony --role worker --file /etc/chrony.conf=./chrony.conf
  shale create machineconfig 50-worker-agent --role worker \\
    --file /etc/agent.conf=./agent.conf:0600 --unit agent.service=./agent.service --enable agent.service
  shale create machineconfig 50-worker-hugepages --role worker --karg hugepages=128 | kubectl apply -f -`;

/** `shale create`: prints objects for `kubectl apply`. */
export function createCommand(): Command {
  return new Command('create').addCommand(machineConfigCommand());
}

function machineConfigCommand(): Command {
  return new Command('machineconfig')
    .description('Print a MachineConfig made of local files, for kubectl apply or for Git.')
    .argument('<name>', 'name of the MachineConfig')
    .requiredOption('--role <name>', 'the role that pools select MachineConfigs by, such as worker')
    .addOption(
      repeated(
        '--file <path=local>',
        'a file: PATH=LOCALFILE[:MODE[:USER[:GROUP]]]; default mode: 0644',
        parseFileFlag,
      ),
    )
    .addOption(repeated('--unit <name=local>', 'a systemd unit: UNIT=LOCALFILE', parseUnitFlag))
    .addOption(
      repeated('--drop-in <name=local>', 'a drop-in of a unit: UNIT/NAME.conf=LOCALFILE', parseDropInFlag),
    )
    .addOption(repeated('--enable <unit>', 'enable a unit, of --unit or of the OS', String))
    .addOption(repeated('--disable <unit>', 'disable a unit', String))
    .addOption(repeated('--mask <unit>', 'mask a unit', String))
    .addOption(repeated('--karg <argument>', 'a kernel argument', String))
    .addOption(outputFlag('yaml', 'json'))
    .addHelpText('after', EXAMPLES)
    .action(async (name: string, flags: CreateFlags) => {
      const parts = await read(name, flags);
      const created = composeMachineConfig(parts);
      const { problems, warnings } = parseMachineConfig(created);
      if (problems.length > 0)
        throw new CommandError(`MachineConfig ${name}: ${problems.map(formatProblem).join('\n  ')}`);
      reportWarnings([
        ...warnings.map(formatProblem),
        ...neitherEnabledNorDisabled(parts).map(
          (unit) =>
            `unit ${unit} has an [Install] section and isn't enabled; expected --enable ${unit}, or --disable ${unit}`,
        ),
      ]);
      printAs(flags.output, RenderOutput, created);
    });
}

/** @returns a flag that may be given several times. */
function repeated<T>(flags: string, description: string, parse: (text: string) => T): Option {
  return new Option(flags, `${description}; may be repeated`)
    .default([])
    .argParser((text: string, earlier: readonly T[]) => [...earlier, parse(text)]);
}

async function read(name: string, flags: CreateFlags): Promise<NewMachineConfig> {
  const { role, enable, disable, mask } = flags;
  if (
    flags.file.length + flags.unit.length + flags.dropIn.length + flags.karg.length === 0 &&
    enable.length + disable.length + mask.length === 0
  )
    throw new CommandError(
      'nothing to create; expected at least one of --file, --unit, --drop-in, --enable, --disable, --mask and --karg',
      exitCodes.usage,
    );
  return {
    name,
    role,
    files: await Promise.all(
      flags.file.map(async (file) => ({ ...file, contents: await contentsOf(file.source) })),
    ),
    units: await Promise.all(
      flags.unit.map(async (unit) => ({ ...unit, contents: await textOf(unit.source) })),
    ),
    dropIns: await Promise.all(
      flags.dropIn.map(async (dropIn) => ({ ...dropIn, contents: await textOf(dropIn.source) })),
    ),
    enable,
    disable,
    mask,
    kernelArguments: flags.karg,
  };
}

async function contentsOf(source: string): Promise<Uint8Array> {
  return readFile(source).catch((cause: unknown) => {
    const why = fileErrorMessage(cause);
    throw new CommandError(`${source} can't be read: ${why}`, exitCodes.usage, { cause });
  });
}

/** A unit is text of the object itself. @throws {CommandError} for what is no UTF-8. */
async function textOf(source: string): Promise<string> {
  const contents = await contentsOf(source);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(contents);
  } catch (cause) {
    throw new CommandError(`${source} is not UTF-8; expected the text of a systemd unit`, exitCodes.usage, {
      cause,
    });
  }
}
