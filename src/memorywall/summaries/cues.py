"""The words by which the classes of statements are recognized: data for `classify.py`.

English is complete; German, Spanish, Chinese and Japanese have the commonest words, so that a
negation, a condition or a decision in them is recognized. The patterns expect the form that
`classify.plain` gives a text: small letters, which match faster than letters of either case.
"""

from __future__ import annotations

from typing import Final

from memorywall.summaries.cue import Cue

CORRECTION: Final = Cue(
    r"\b(?:i|we) (?:meant|misspoke|misremembered|mistyped|misread|mixed up|swapped"
    r"|was wrong|were wrong|got .{1,30} wrong)\b",
    r"\b(?:scratch|strike) that\b|\bcorrection\b|\bmy (?:mistake|bad|error)\b|\btypo\b",
    r"\b(?:corrected|correcting) (?:me|myself|you|that)\b|\blet me (?:correct|rephrase|fix)\b",
    r"\bthat(?:'s| is| was)(?: not|n't)? (?:wrong|incorrect|right\b(?=, it)|outdated)\b",
    r"\b(?:was|were) (?:wrong|incorrect|mistyped)[,;:]",
    r"\bmake (?:it|that) (?:\w+ )?\S*\d|\bshould (?:be|read|say|have been) [^.]{0,40}\bnot\b",
    r"\bi (?:said|wrote|gave you|told you) [^.]{0,60}\b(?:but|wrong)\b",
    r"\b(?:looked it up|checked again|double-checked|measured again)\b|\bturns out\b",
    r"\bkorrektur\b|\bich meinte\b|\bquise decir\b|\bcorrección\b|更正|說錯|说错|訂正|間違え|تصحيح",
)
"""Words with which a user corrects something."""

CONTRAST: Final = Cue(
    r"\b(?:is|was|are|were)(?:n't| not| never) [^,;.]{1,60}[,;:] ?(?:but |it'?s |rather )",
    r"\b(?:not|never) (?:on |in |at |the |a )?[^,;.]{1,40}[,;:] (?:but |it'?s |i'?m |the "
    r"|\S*\d)",
    r"\b\S*\d\S* ?,? (?:and )?not \S*\d",
)
"""Not this but that: a correction if both are values; otherwise mostly rhetoric."""

CORRECTION_START: Final = Cue(
    r"^(?:(?:oh|ah|oops|ok|okay|hm+|so|sorry|well|yes|and|but|no)[,.!… ]+)*\b"
    r"(?:(?:actually|no wait|wait|hang on|hold on|oops|in fact|to be precise|on second thought"
    r"|eigentlich|perdón"
    r"|en realidad)[,:.!\s—–-]|(?:no|sorry|update|rather|nein|doch|لا)[,:.!—–-])",
    r"^(?:不对|不是|いや|実は)",
)
"""A start that makes a statement with a value a correction, if an earlier one had another value."""

CORRECTION_ALONE: Final = 60
"""The most characters of a sentence whose correction stands in the next sentence."""

CONDITIONAL: Final = Cue(
    r"\b(?:if|unless|in case|provided|as long as|as soon as|once|whenever|assuming"
    r"|in the event|until|only when|otherwise)\b",
    r"^(?:should|when|were|had) \w+\b[^.?]*,",
    r"\b(?:wenn|falls|sofern|sobald)\b|\bsi\b [^.]*,|\ben caso de\b",
    r"如果|要是|若|なら|たら|場合|إذا",
)

DECISION: Final = Cue(
    r"\b(?:decided?|settled|chose|chosen|opted?|opting|picked|agreed"
    r"|concluded)\b",
    r"\b(?:let's|let us|we'll|i'll|we|i'd|i|we'd|will|to)"
    r" (?:go(?:ing)? (?:with|for|ahead)"
    r"|take\b|use\b|book\b|pick\b|choose\b|skip\b|drop\b|keep the\b|start with\b|do the\b"
    r"|stick with"
    r"|rule out|leave .{1,40} out|treat .{1,40} as|switch\b|move to\b|postpone\b)",
    r"\bgoing with\b|\bthe plan is\b|\bit's a deal\b|\bgo ahead\b|\bfinal (?:answer|choice"
    r"|call)\b",
    r"\bwe(?:'re| are) (?:making|going|using|taking|switching|dropping|moving|keeping)\b",
    r"\b(?:it is|it's) settled\b|\bbook(?: the| it)\b|\bin favou?r of\b"
    r"|\bover the\b.*\bbecause\b",
    r"\b(?:i|we|let's)\b.*\b(?:instead of|rather than)\b|\bbest (?:way|option|choice) is\b"
    r"|^do it\b",
    r"^(?:(?:yes|yep|ok|okay|fine|deal|sure|good|perfect|great|all ?right|agreed"
    r"|then)[,.!:]? )+(?:please )?"
    r"(?:do it|go with|go for|take|use|book|choose|pick|let's|let us|we(?:'ll)?|send|make|roll"
    r"|cancel)\b",
    r"\b(?:entschieden|beschlossen|wir nehmen)\b|\b(?:decidimos|decidí|hemos decidido)\b|决定|決め"
    r"|قررنا",
)

_NO_PROMISE = (
    r"(?!(?:\w+ )?(?:be (?:happy|glad|able|a |the |in |here|fine|easier|rather)|happily"
    r"|gladly|see\b"
    r"|think|get there|keep (?:that|this|it) in mind|let you know|feel|find|notice|need|want"
    r"|help\b"
    r"|fall|become|seem|depend|make (?:everything|things|it)|be\b))\w+"
)

PROMISE: Final = Cue(
    r"\b(?:i|we|he|she|they)(?:'ll| will| shall|(?:'m|'re| am| are|'s| is) going to) "
    + _NO_PROMISE,
    r"\byou(?:'ll| will) (?:get|receive|hear)\b|\bwill be (?:in your|with you|sent|ready"
    r"|delivered)\b"
    r"|\bi promise\b|\byou have my word\b|\bon my list\b",
    r"\bich (?:schicke|werde|rufe|melde)\b|\b(?:enviaré|llamaré|voy a|te mando)\b",
    r"我会|我會|します|سأ",
)

NAMED_PROMISE: Final = Cue(r"\b\w+ (?:will|shall) " + _NO_PROMISE)
"""A promise for somebody who is named."""

OFFER: Final = Cue(
    r"\b(?:would you like|do you want me|shall i|can you tell|could you|can we|could we"
    r"|are you ready"
    r"|which of these|would you prefer)\b",
)
"""Questions of politeness, which leave nothing open."""

OPEN: Final = Cue(
    r"\b(?:still|yet) (?:need|have|has|to|open|unclear|unresolved|waiting|missing|undecided"
    r"|pending)\b",
    r"\b(?:to-?do|tbd|tbc|pending|undecided|unresolved|outstanding|open question|remains? "
    r"(?:open|unclear|to))\b|\bis (?:still )?(?:open|unclear)\b|\bwaiting (?:for|on)\b"
    r"|\bawaiting\b",
    r"\b(?:haven't|hasn't|not|don't know|have not) [^.?]*\byet\b",
    r"\b(?:don't|do not|doesn't|isn't|not) (?:know|sure|clear|decided)\b[^.]*"
    r"\b(?:whether|if|which|who|how|when|where)\b",
    r"\bnot decided\b|\bhas to say (?:if|whether)\b|\bto be (?:confirmed|decided|clarified)\b"
    r"|\bremains unclear\b|\bneeds? to (?:find|figure|work) out\b|\bnobody knows\b",
    r"\boffen\b|\bpendiente\b|待定|未定",
)

OPEN_QUESTION: Final = Cue(
    r"\bor not\b|^(?:do|would|should|shall|can|could|will|which|who|when|where|is|are|does"
    r"|did)\b",
)
"""The beginning of a question that is open; it counts only with a carrier or a choice."""

CONSTRAINT: Final = Cue(
    r"\b(?:must|has to|(?<!don't )(?<!not )have to|needs to|(?<!no )(?<!don't )need to|ought to"
    r"|required|mandatory|no more than|no later than|no earlier than|at (?:most|least) half"
    r"|(?:go|be|stay|keep \w+) (?:above|under|below|within|over)|ceiling)\b|^always\b",
    r"\b(?:make sure|ensure|(?:i|we)(?:'d| would)? (?:rather|prefer|want|insist|need|require)\b"
    r"(?!\W*$)|(?:i|we)(?:'d| would) like|prefers?|preferably)\b",
    r"\bonly (?:\w+ ){0,4}(?:if|when|in|on|at|by|between|before|after|from|with|the|one"
    r"|acceptable)\b",
    r"\b(?:can|could|may|is able to|are able to) only\b|\ballerg\w+|\bvegetarian\b|\bvegan\b"
    r"|\bwheelchair\b|\bcannot (?:exceed|be)\b|\b(?:won't|will not) pay\b",
    r"\b(?:please|kindly) (?:\w+ ){0,3}(?:use|keep|avoid|do|leave|stay|write|stick|limit|include"
    r"|send)\b",
    r"\b(?:muss|müssen|soll|höchstens|mindestens)\b|\b(?:debe|tiene que|como máximo|al menos)\b"
    r"|必须|必須|一定要|最多|至少|しなければ|يجب",
)

LIMIT: Final = Cue(
    r"\b(?:maximum|minimum|max|min|limit|cap(?:ped)?|budget|deadline|up to|exactly|at least|at most"
    r"|always|every time|keep)\b",
)
"""Words that make a constraint of a statement with a number or a date."""

NEGATION: Final = Cue(
    r"\b(?:do|does|did|can|could|may|might|must|should|shall|will|would|is|are|was|were|has"
    r"|have"
    r"|am)"
    r"(?:n't| not| never)\b",
    r"\bcannot\b|\b(?:ca|wo)n't\b|\bnever\b|\bno longer\b|\bnot (?:allowed|permitted|going|able"
    r"|to|a|the|"
    r"any|interested|authori[sz]ed)\b|\bnothing (?:may|must|should|was|has|can|is to)\b"
    r"|\b(?:none|neither|nor|nobody|no one)\b|\bwithout (?:any|a|an|the|my|our)?\b|\bexcept\b"
    r"|\brefuse[sd]?\b",
    r"\b(?:nicht|kein\w*|nie|niemals|ohne)\b|\b(?:nunca|jamás|ningun[oa]?|sin|no (?:puedo"
    r"|quiero"
    r"|debe|es|hay))\b"
    r"|不|没|沒|未|别|ない|ません|لا |ليس|لم |لن ",
    r"^no (?!\w+ing\b)[a-z]+ \w+|\bthere(?:'s| is| are|'re) no\b|\b(?:have|has|had) no\b",
)

IDLE_NEGATION: Final = Cue(
    r"\b(?:not sure|no (?:problem|worries|rush|hurry|doubt|need|idea|wonder)|don't worry"
    r"|why not"
    r"|not bad"
    r"|nothing to (?:be|worry|add)|not (?:only|just|always|necessarily|really|exactly|at all"
    r"|long ago)"
    r"|can't (?:wait|complain|hurt)|couldn't agree more|hadn't (?:thought|looked|noticed"
    r"|considered)"
    r"|isn't (?:it|that)|aren't (?:they|we)|don't (?:you )?think|never mind|rarely"
    r"|there is no rush)\b",
    r"n't (?:it|you|they|we|he|she)\?",
    r"(?:n't|not|never) (?:know that|mind\b|think|thought|expecting|hesitate|realis|realiz"
    r"|look at it|care)",
)
"""Negations of a phrase that negate no fact."""

OUTCOME: Final = Cue(
    r"\b(?:done|fixed|booked|confirmed|completed|finished|resolved|solved|succeeded|success\w*"
    r"|failed|fails"
    r"|passed|cleared|accepted|approved|rejected|declined|cancelled|canceled|refunded|reversed"
    r"|deployed|merged"
    r"|shipped|arrived|delivered|returned|received|signed|paid|went through|worked|works now"
    r"|is back|expired"
    r"|ordered|submitted|reserved|installed|updated to|reports?|found|blocked|denied|granted"
    r"|timed out"
    r"|has been (?:\w+ed|sent|made|paid|set)|was (?:sent|made|denied))\b",
    r"\b(?:erledigt|gebucht|bestätigt|fehlgeschlagen)\b|\b(?:confirmad[oa]|reservad[oa]"
    r"|hecho)\b"
    r"|完成|成功|失败|完了|تم ",
)

HAPPENED: Final = Cue(
    r"^\W*\w+ed\b",
    r"(?:\b(?:has|have|had|is|are|was|were|been|got)|'s|'ve) (?:\w+ ){0,2}\w+(?:ed|en|ne|id"
    r"|nd|nt)\b",
    r"\b(?:i|we|he|she|they|it|everything|(?:the|my|our|your|this) (?:\w+ )?\w+) (?:\w+ )?"
    r"(?:\w+ed|fails|works now|went through|found|reports|timed out|paid)\b",
    r"erledigt|gebucht|bestätigt|fehlgeschlagen|confirmad|reservad|hecho|完成|成功|失败|完了|تم ",
)
"""The words of an outcome without a value, which is neither a wish nor a general remark."""

PROBLEM: Final = Cue(
    r"\b(?:problems?|issues?|trouble|broken?|breaks?|burst|crash\w*|fail\w*|errors?|stuck|wrong"
    r"|keeps? \w+ing"
    r"|lost|missing|late|delayed|charged|complain\w*|unconvincing|can't|cannot|does ?n't|won't"
    r"|stopped|stolen|leak\w*|backed out|behind|shak(?:es|ing)|hurts?|pain|nobody|incomplete"
    r"|damaged"
    r"|overcharged|refuses|unable|down)\b",
    r"\b(?:kaputt|fehler|defekt)\b|\b(?:roto|falla|error)\b|坏|故障|壊れ|エラー|عطل|مشكلة",
)

SENTIMENT: Final = Cue(
    r"\b(?:annoy\w*|angry|furious|infuriat\w*|frustrat\w*|upset|sad|exhaust\w*|tired|fed up"
    r"|worried|worry"
    r"|anxious|stress\w*|panic\w*|scared|afraid|nervous|disappoint\w*|miserable|unhappy"
    r"|desperate|overwhelmed"
    r"|gutted|heartbroken|devastated|tears|happy|thrilled|excited|relieved|delighted|grateful"
    r"|love|hate"
    r"|terrible|awful|morale|discouraged|end of my tether|worn out|gets me down)\b",
    r"\b(?:verärgert|wütend|enttäuscht)\b|\b(?:enfadad[oa]|triste)\b|生气|难过|怒|悲し|غاضب|حزين",
    r"[\U0001f620-\U0001f62d\U0001f641\u2639]",
)

CHITCHAT: Final = Cue(
    r"^\W*(?:(?:hi|hello|hey|thanks?(?: you| a lot| so much)?|ok(?:ay)?|sure|great|perfect"
    r"|lovely"
    r"|nice|cool|right|alright|all right|good|fine|yes|yep|no|well|deal|done|haha|hm+|wow|oh|ah"
    r"|understood|noted|agreed|got it|welcome|you're (?:very )?welcome"
    r"|you are (?:very )?welcome"
    r"|sounds good|makes sense|good (?:morning|evening|point|choice|idea)|of course|absolutely"
    r"|certainly|exactly|true|see you|bye|goodbye|take care|cheers|danke|bitte|hallo|gracias"
    r"|hola"
    r"|谢谢|你好|こんにちは|ありがとう(?:ございます)?|شكرا|مرحبا)\W*)+$",
    r"^\W*$",
)

POLITENESS: Final = Cue(
    r"\b(?:glad|happy|here) to (?:help|hear)\b|\blet me know (?:how|if|what|when)\b"
    r"|\bfeel free\b"
    r"|\bthank(?:s| you)\b|\bhope (?:this|that|it) helps\b|\btake your time\b|\bno rush\b",
)
"""Phrases of politeness: chitchat in a short sentence that denies nothing."""

INSTRUCTION: Final = Cue(
    r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:instruction|prompt|rule"
    r"|previous|above|prior"
    r"|policy|everything)\w*",
    r"\b(?:you (?:must|should|are now|have to|will now|need to)|from now on|new instructions?"
    r"|system prompt"
    r"|do not (?:tell|mention|reveal|inform)|as an ai|act as|pretend)\b",
    r"^(?:please |always |never |now )?(?:send|transfer|delete|reveal|print|execute|run|call"
    r"|forward|email|click"
    r"|install|download|pay|wire|approve|remember|tell|reply|respond|output|write|change|set"
    r"|reset|disable"
    r"|grant|use)\b(?!:)",
)
"""Sentences that instruct. In content that is not trusted they are data of no importance."""

IDLE: Final = Cue(
    r"\b(?:one step at a time|get there|don't hesitate|feels? natural|with a bit of luck"
    r"|come back to (?:this|that|it)"
    r"|keep (?:that|this|it) in mind|let's (?:move on|see|continue|begin|look|go through)\b)",
)
"""Phrases of encouragement, which decide and promise nothing."""

STRONG_CONDITION: Final = Cue(r"\b(?:unless|in case|provided)\b|^should \w+")

GENERAL: Final = Cue(
    r"\b(?:in general|generally|usually|typically|often|most people|many people|people"
    r"|some prefer|there (?:is|are)|as a rule|of course|experience shows|you (?:may|might|can"
    r"|could)"
    r"|this (?:is|means|helps|can)|these (?:are|can)|consider|for example|for instance|e\.g\."
    r"|such as"
    r"|common(?:ly)?|tends? to|rarely)\b",
    r"(?:^|, )it (?:is|can|may|might|helps?|depends|always|only)\b",
)
"""Words of general advice: in an assistant's turn they make a statement context."""
