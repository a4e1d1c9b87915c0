import { Command } from 'commander';
import { CommandError } from './exit-codes.ts';
import { type FileFlags, objectsOf, withFilesOrCluster } from './file-flags.ts';
import { limitsOf } from './limit-flags.ts';
import { offlineCluster, problemsOf } from './offline-cluster.ts';
import { ValidateOutput } from './output-schemas.ts';
import { outputFlag, print, printAs, TABLE_FORMATS } from './print.ts';

/** `shale validate`: exit code 0 for what is valid, 1 with every problem for what is not. */
export function validateCommand(): Command {
  const command = new Command('validate').description('Check MachineConfigs and disruption policies.');
  return withFilesOrCluster(command)
    .addOption(outputFlag(...TABLE_FORMATS))
    .action(async (flags: FileFlags) => {
      const cluster = offlineCluster(await objectsOf(flags), limitsOf(flags));
      const problems = problemsOf(cluster);
      const valid = problems.length === 0;
      if (flags.output !== 'table') printAs(flags.output, ValidateOutput, { valid, problems });
      else if (valid) print(`${cluster.configs.length} MachineConfigs are valid`);
      else print(problems.join('\n'));
      if (!valid) throw new CommandError(`${problems.length} problems found`);
    });
}
