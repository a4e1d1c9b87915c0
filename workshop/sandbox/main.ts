import { runProgram } from '../../cli/program.ts';
import { checkoutCommands } from './checkout-commands.ts';

/** `shale` in a checkout: the product's program and the sandbox, which the product doesn't know. */
await runProgram(checkoutCommands);
