// Owns: the line that says that a message may have come before, and the room that each message leaves for it (G4).

/** UTF-16 units of one message (https://core.telegram.org/bots/api#sendmessage). */
export const MAX_UNITS = 4_096;
export const AGAIN = "(sent again: the first try was not confirmed)";
export const AGAIN_LINE = `${AGAIN}\n`;
/** Units of what is rendered: it must be possible to send any of it again, marked. */
export const ROOM_UNITS = MAX_UNITS - AGAIN_LINE.length;
