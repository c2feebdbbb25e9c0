// What is said when something is wrong: what happened, and what to do about it.

const CODES = {
  resource_exhausted: 'The server is full: as many conversations as it allows are going on. Try again in a moment.',
  engine_error: 'A part of the graph failed, and this answer with it. Say it again, or start anew.',
  internal_error: 'The server made a mistake. Try again.',
  invalid_session_config: 'The server refuses these settings.',
  unsupported_turn_detection: 'This graph cannot tell by itself when you have finished. Use push to talk.',
  server_vad_unavailable: 'This graph cannot tell by itself when you have finished. Use push to talk.',
  voice_update_after_audio_unsupported: 'The voice is fixed once an answer was heard. It changes with the next conversation.',
  voice_update_unsupported: 'This graph has one voice only.',
  invalid_voice: 'The server does not know this voice.',
  text_only_turn_unsupported: 'This graph takes speech only.',
  input_audio_buffer_commit_empty: 'Nothing was heard. Hold the button while you speak.',
  response_create_without_input: 'Nothing was heard. Hold the button while you speak.',
  input_backpressure: 'The server cannot take more at the moment. Wait for the answer.',
  output_overflow: 'This browser did not keep up with the server, and the conversation was closed. Start again.',
  config_timeout: 'The server waited for this page in vain. Start again.',
};

const MICROPHONE = {
  NotAllowedError: 'The microphone is not allowed. Allow it for this page in the browser (beside the address), then start again. Writing works without it.',
  NotFoundError: 'There is no microphone. Plug one in, or write below.',
  NotReadableError: 'The microphone is in use by another program. Close that one, then start again.',
  OverconstrainedError: 'The microphone cannot be used with echo cancellation. Try another one.',
  SecureContextError: 'Browsers give the microphone only to pages at localhost or over https. Open this page that way, or write below.',
};

const CLOSED = {
  idle_ttl_expired: 'The conversation ended because nothing happened for a while.',
  disconnect_grace_expired: 'The connection was lost for too long, and the conversation ended.',
  shutdown: 'The server is being stopped.',
  session_replaced: 'The conversation goes on in another window.',
  timeout: 'The conversation took longer than the server allows.',
};

// Races that nobody lost.
const QUIET = new Set([
  'response_cancel_not_active',
  'playback_ack_too_late',
  'playback_item_not_found',
  'item_not_found',
  'item_retrieve_invalid_item_id',
  'conversation_already_has_active_response',
]);

export const quiet = (code) => QUIET.has(code);
export const error = ({ code, message }) => CODES[code] ?? message ?? 'The server refused something without saying why.';
export const microphone = (e) => MICROPHONE[e.name] ?? `The microphone does not work: ${e.message || e.name}.`;
export const closed = (reason) => CLOSED[reason] ?? 'The conversation ended.';
export const refused = (status) => {
  if (status === 401) return 'The server asks for an API key.';
  if (status === 403) return 'The server does not serve pages from this address. Add it to `serve.allowed-origins`.';
  if (status === 404) return 'This graph is not one to talk with.';
  if (status === 0) return 'The server cannot be reached. Is it running?';
  return `The server answered with status ${status}.`;
};
export const badKey = 'The key has characters that a browser cannot send here.';
export const unreachable = 'The connection was lost. Trying to go on where it broke …';
export const anew = 'The conversation could not go on where it broke, so this is a new one: what was said before is not known to it.';
export const noMicrophone = 'The microphone was unplugged or taken away. Writing still works.';
