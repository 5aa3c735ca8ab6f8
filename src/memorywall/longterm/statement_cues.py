"""Words that tell durable statements from talk of the moment: data for `worthiness.py`.

They complete those of `summaries/cues.py`, which tell the classes of statements in a conversation.
The patterns expect the form that `classify.plain` gives a text: small letters.
"""

from __future__ import annotations

from typing import Final

from memorywall.summaries.cue import Cue

DURABLE: Final = Cue(
    # What somebody is, has, likes or does as a rule.
    r"\b(?:prefers?|preferred|likes?|dislikes?|loves?|hates?|allerg\w+|intoleran\w+|vegan"
    r"|vegetarian|favou?rite|rather|wants?|wishes|always|never|usually|speaks?|lives?|owns?|born"
    r"|married|my birthday|birthday is|retired|switched|moved into|works? (?:at|for(?! me)|in|as"
    r"|on)|reports? to|leads?|is responsible for|moved to"
    r"|moves to|promoted|joined|no longer|any ?more|care about|asked for|does(?: not|n't)"
    r"|do(?: not|n't) (?:like|want|eat|drink|call|use|send))\b",
    r"\b(?:my|our|his|her|their|(?!let|that|it|here|there|what|who|he"
    r"|she)\w+'s) (?:\w+ ){0,3}(?:is|are|was|starts?|ends?|begins?)\b",
    r"\b(?:name|number|id|code|address|email|e-mail|phone|password|account|ticket|order|contract"
    r"|version|port|url|dashboard|branch|plan|policy|budget|deadline|sla|window)\b",
    r"\bi(?:'m| am)? (?:keep|have|play|study|teach|own|drive|run|collect|train|use|grow|wear"
    r"|take"
    r"|sell|build|drink|eat|avoid|an? \w+|\d+)\b",
    # What a system does, needs or is.
    r"\b(?:runs? on|listens? on|returns?|requires?|depends? on|supports?|disables?|enables?"
    r"|stores?|kept|belongs? to|contains?|costs?|includes?|uses|is (?:located|hosted|stored"
    r"|written|kept|based)|valid|expires?|signed|replicas?)\b",
    r"\b(?:wohn\w*|arbeite\w*|heiß\w*|mag|möchte\w*|bevorzug\w*|trinke\w*|esse|isst|immer|nie"
    r"|nicht mehr|nur noch|geboren|geburtstag|beginnt|steht|stehen|läuft auf|kostet"
    r"|braucht|darf|nummer|vertrag)\b",
    r"\b(?:prefier\w+|gusta\w*|vive[ns]?|vivo|trabaj[ao]\w*|llam[ao]\w*|tiene\w*|siempre|nunca"
    r"|cumpleaños|número|odi[ao]|alérgic\w+|usa[mn]?|cuesta|ya no)\b",
    r"\b(?:préfère\w*|aime\w*|habite\w*|travaille\w*|s'appelle|est (?:un|une|le|la|médecin"
    r"|situé)"
    r"|toujours|jamais|ne (?:mange|boit|doit|peut|fonctionne)|numéro|allergique|écoute sur"
    r"|s'exécute|doivent|coûte|anniversaire)\b",
    r"\b(?:preferisc\w+|piace|vive|vivo|abit[ao]|lavor[ao]\w*|si chiama|sempre|mai|numero"
    r"|massimo"
    r"|compleanno|allergic\w|costa|deve|devono)\b",
    r"\b(?:prefir\w+|prefere\w*|gosto|gosta\w*|moro|mora\w*|trabalh[ao]\w*|chama\w*|sempre|nunca"
    r"|número|alérgic\w|custa|devem?|fica\w*)\b",
    r"喜欢|不喝|不吃|偏好|希望|住在|工作|叫|今年|岁|生日|过敏|运行|端口|必须|不能|最多|订单号"
    r"|单号|号码|总是|从不|是在|要求|不再|用中文",
    r"好き|嫌い|希望|住ん|働い|勤め|アレルギー|誕生日|名前|ポート|動いて|番号|必要|使って"
    r"|ません(?!か)|てはいけ|苦手|いつも",
    r"\b(?:предпочита\w+|люб\w+|не ем|жив[еуё]\w*|работает|зовут|родил\w*|у (?:нас|меня|него"
    r"|неё)"
    r"|всегда|никогда|номер|аллерги\w+|долж\w+|стоит|больше не|хран\w+)\b",
    r"أفضل|يفضل|أحب|يحب|يعمل|تعمل|أعمل|يسكن|أسكن|اسمي|رقم|يجب|لا يجوز|دائم|أبد|حساسية|عمري",
    r"좋아|싫어|못 먹|일합|일해|살고|삽니다|이름|번호|항상|알레르기|선호|사용합",
    r"\b(?:tercih|sever\w*|sevmiyor\w*|yaşıyor\w*|çalışıyor(?!lar)\w*|adı\w*|numarası|her zaman"
    r"|asla|alerji\w*|kullanıyor\w*)\b",
)
"""Words of facts, preferences and identifiers that hold beyond the conversation."""

DECIDED: Final = Cue(
    r"\b(?:decision|approved|adr|concluded|chose|signed off)\b|\bwe (?:ship|use|stay|drop"
    r"|moved)\b"
    r"|\bstays? on\b|\bdrop(?:ped)? support\b|\bwe'll (?:ship|keep|stay|release)\b",
    r"\b(?:wir (?:haben|nehmen|nutzen|setzen)|nous avons|on a (?:décidé|choisi)|abbiamo"
    r"|decidemos"
    r"|hemos|acordamos|concordamos|мы (?:решили|выбрали|договорились)|karar verdik)\b",
    r"决定|选定|決め|決まり|采用|採用|قررنا|اتفقنا|결정",
)
"""Words of decisions, besides those of a conversation."""

LEARNED: Final = Cue(
    r"\b(?:root cause|caused by|the cause (?:was|is)|because of|due to|(?<=[^i] )fixe[sd]"
    r"|fix is|solved"
    r"|resolved|resolves|cured|workaround|turned out|refunded|escalat\w+|unlocked|renewed"
    r"|outdated"
    r"|incorrect|corrected|did not help|the right one|instead of|correct(?:ion)?"
    r"|(?:cut|reduced|brought) .{1,60} (?:from|to)|kept them|works with)\b",
    r"\b(?:ursache|gelöst|behoben|eskal\w+|statt|richtig ist|falsch|läuft .{1,60} in)\b"
    r"|\b(?:causa\w*|resuel\w+|resolvi\w+|solucion\w+|incorrect\w+|en lugar de|correcto)\b"
    r"|\b(?:résolu\w*|cause était|au lieu d\w+|risolt\w+|invece di|em vez de|решен\w+"
    r"|причин\w+)\b",
    r"原因|解决|不再|改成|而不是|直し|解決|代わり|ではありません|السبب|تم حل|원인|해결",
)
"""Words of what was learned: causes, repairs, and what was wrong."""

PROCEDURE: Final = Cue(
    r"^(?:to|when|if|first|for|before|after|whenever|steps?|release steps?|zum|zuerst|para|pour"
    r"|per|чтобы|если|сначала)\b.{4,}(?:[,:;]|\bthen\b|\bask\b|`)",
    r"`[^`]+`",
    r"\b(?:first .+\bthen|zuerst .+\b(?:dann|danach)|primero .+\bluego|d'abord .+\bpuis"
    r"|prima .+\bpoi|primeiro .+\bdepois|сначала .+\bзатем)\b",
    r"先.+(?:再|然后)|步骤|まず.+次に|するには|手順|أولا.+ثم|먼저.+다음",
)
"""Words of instructions that are followed again."""

STATED: Final = Cue(
    r"\b(?:remember|note|mind|know) that\b|\bfyi\b|\bby the way\b",
    r"\b(?:merk dir|denk daran|recuerda que|rappelle-toi|ricorda che|lembre|запомни)\b|记住"
    r"|覚えて",
)
"""Words by which a question or a request states something."""

HYPOTHETICAL: Final = Cue(
    r"\b(?:may or may not|if only|perfect world|ideal world|one day|some day|i think (?:that's"
    r"|so|it)|somebody (?:could"
    r"|should)"
    r"|someone (?:could|should)|one could)\b",
    r"\b(?:maybe|perhaps|would be (?:nice|great|good|cool)|give it a go|someday|not convinced"
    r"|not entirely|possibly|might|what if|wonder\w*|guess|suppose|imagine|hypothetically"
    r"|in theory|who knows|no idea|not (?:so )?sure|unclear|hard to say|at some point)\b",
    r"\b(?:looks? like|seems? (?:like|to)|appears to|suppose)\b|\b(?:could|would) (?:be|also"
    r"|even|probably|work|try|have been)\b|\bwe could\b"
    r"|^if (?:i|we) (?:won|were|had)\b",
    r"\b(?:vielleicht|möglicherweise|könnte[nst]*|eventuell|keine ahnung|angenommen)\b",
    r"\b(?:quizás?|tal vez|a lo mejor|podría\w*|no sé)\b|\b(?:peut-être|pourrait|on pourrait)\b"
    r"|\b(?:forse|potre\w+|magari|chissà)\b|\b(?:talvez|poderia\w*|quem sabe)\b",
    r"也许|或许|可能|说不定|不太确定|不确定|かもしれ|かも[。.]?$|もしかし|たぶん|らしい",
    r"\b(?:может быть|возможно|наверное|вероятно|не уверен\w*)\b|ربما|لست متأكد|قد يكون"
    r"|아마|일지도|\b(?:belki|galiba|emin değil\w*)\b",
)
"""Words of guesses and of what nobody has decided."""

TRANSIENT: Final = Cue(
    r"\b(?:starts?|begins?|leaves?|ready|back|there|done|over) in (?:an? |\w+ )?(?:minutes?"
    r"|seconds?"
    r"|hours?|moment)\b|\bminutes? late\b|\bin the background\b|^out of \w+|\b(?:te llamo"
    r"|ti chiamo|je t'appelle|a dopo)\b|休憩|ararım\b|\bheading (?:out|home|to)\b",
    r"\blet me\b|\b(?:need|have|want|going|like) to think\b"
    r"|\bthink (?:about|this|it) (?:it|how|over)\b",
    r"\b(?:right now|at the moment|for now|be right back|brb|one (?:moment|second|sec|minute)"
    r"|just a (?:moment|second|sec|minute)|hold on|hang on|shortly|in a (?:second|sec|minute|bit"
    r"|moment)|please wait|talk (?:to you )?later|back soon|a moment ago)\b",
    r"\b(?:i'll|i will|we'll|we will|let me|let's|going to|about to|gonna) (?:just |quickly "
    r"|now )?"
    r"(?:check|look|have a look|see|get back|be back|answer|reply|test|try|grab|go through"
    r"|take a look|find out|verify|investigate|know)\b",
    r"\b(?:is|are|am|'m|'s|'re) (?:still |just |currently )(?:\w+ing|here|busy|away)\b"
    r"|\bcurrently (?:\d+|waiting|busy|online|offline|running|loading)\b",
    r"\b(?:is|are) (?:typing|loading|busy|offline|online|in a meeting)\b|\bmy battery\b"
    r"|\bon my way\b|\bi'?m (?:at|in|on) (?:the|a|my)\b|\bsomeone is at\b",
    r"\b(?:einen moment|moment bitte|gleich|gerade|bin (?:unterwegs|gleich|kurz)|melde mich)\b"
    r"|\b(?:un momento|ahora mismo|enseguida|estoy (?:revisando|mirando|en))\b",
    r"\b(?:un instant|tout de suite|je (?:regarde|vérifie)|un attimo|controllo subito|arrivo"
    r"|só um momento|um momento|vou verificar|agora mesmo)\b",
    r"请稍等|马上|稍后|正在(?:开会|路上)|晚点|现在正|少々お待ち|今(?:確認|電車|向か|会議|から)"
    r"|しばらくお待ち",
    r"\b(?:одну (?:минуту|секунду)|сейчас|минутку|подождите)\b|لحظة|سأتحقق|الآن|حاليا"
    r"|잠시만|지금|곧 |금방|[갈할볼]게요|\b(?:bir dakika|hemen|şu anda|birazdan)\b",
)
"""Words of what is over in a moment."""

PROGRESS: Final = Cue(
    r"^\w{3,}ing(?: \S+){0,6}$|\w (?:asks?|asking|prompts?|prompting|waits?|waiting) for (?:a"
    r"|an|the"
    r"|my|your|user|input)\b|\b(?:returned|raised|threw|got) an? (?:\w+ )?(?:error|exception)\b"
    r"|\bi (?:clicked|pressed|typed|scrolled|selected|navigated|tapped|ran|opened|searched"
    r"|tried)\b"
    r"|\b(?:screenshot|screen|page|form|dialog|browser|terminal|console|output|log) (?:shows?"
    r"|says"
    r"|displays?|loaded|opened|contains)\b|\bthere (?:is|are|were|was) no (?:match|result|output"
    r"|file|error|change|hit)\w*|\brerun\w*\b|\b(?:more|remaining) (?:\w+ )?(?:to go|left)\b"
    r"|\b(?:is|are) \w+ing again\b|\bapplied the\b"
    r"|^the (?:\w+ )?(?:file|button|page|search|form|request|command|window|tab|download|upload"
    r"|output|result|screen|dialog|process|patch|tests?|build|menu|spinner|link) (?:is|are|was"
    r"|were"
    r"|has been|have been|came|looks?) (?:\w+ )?(?:saved|loaded|loading|greyed|grayed|open"
    r"|opened"
    r"|closed|created|updated|ready|empty|running|back|done|visible|passing|failing|green|red"
    r"|ok)\b"
    r"|\bi (?:don't|can't|do not|cannot) (?:see|find)\b|\bi (?:noticed|found|spotted) (?:an?"
    r"|the|some)\b"
    r"|^next(?: up)?[:,]",
    r"^(?:now |still |currently )?(?:fixed|added|updated|removed|renamed|refactored|committed"
    r"|pushed|merged|created|deleted|reviewed|completed|implemented|verified|cleaned|moved"
    r"|wrote|applied|ran|opened|got|tried|executed|clicked|scrolled|downloaded"
    r"|installed|searched|queried|fetched|checked|looked at|pass|passed|failed|compiling"
    r"|executing"
    r"|running|reading|searching|opening|processing|downloading"
    r"|uploading|calling|building|installing|fetching|checking|loading|retrying|scanning"
    r"|starting"
    r"|working|editing|writing|creating|analy[sz]ing|thinking|testing|waiting"
    r"|looking|resolving|solving|connecting|deploying|verifying|generating)\b",
    r"\bsteps? \d+ ?(?:/|of) ?\d+|\b\d+ ?(?:/|of|von|de|sur|di) ?\d+\b.*(?:done|completed"
    r"|abgeschlossen|terminé\w*|completad\w+)|\b\d+ ?% (?:done|complete)|\b(?:batch|request|page"
    r"|attempt|retry|step|schritt|paso|étape|passo) \d+",
    r"\b(?:i(?:'ve| have)|we(?:'ve| have)) (?:now |just )?(?:read|updated|created|added|changed"
    r"|edited|opened|found|run|started|finished|written|fixed the (?:typo|import))\b",
    r"\bnext,? i\b|\b(?:build|task|job|run|tests?|deploy(?:ment)?|upload|download|pipeline)"
    r" (?:has |have )?(?:finished|started|done|completed|passed|succeeded|queued)\b",
    r"\b(?:all )?\d+ tests? passed\b|\bi found \d+\b|\bcreated (?:branch|file|commit)"
    r"|\bpushed \d+"
    r"|\bthe agent (?:opened|clicked|read|scrolled|started)|\blet me (?:start|begin|now|read"
    r"|open"
    r"|run|search)\b|\bnow (?:reading|running|editing|i)\b|\bso far\b|\bmoving on\b"
    r"|\btrying again\b|\bretrying\b"
    r"|\b(?:command|process|script|query|response|output|result|search) (?:completed"
    r"|was (?:empty|ok)"
    r"|returned (?:nothing|no)|succeeded|exited)|\bi (?:can )?see \d+|\bhere(?:'s| is"
    r"| are) (?:what|the)"
    r"|\blet me (?:summari[sz]e|think|see|know)\b",
    r"\b(?:ich (?:lese|prüfe|starte|öffne|suche) (?:jetzt|nun|gerade)|laufen gerade"
    r"|läuft gerade)\b"
    r"|\b(?:ejecutando|leyendo|buscando|procesando|descargando|abriendo|instalando)\b"
    r"|\b(?:en cours|lecture du|exécution des|recherche de)\b|\bin corso\b|\b(?:executando|lendo"
    r"|buscando|processando|baixando)\b",
    r"正在|を?(?:実行|読み込|検索|処理|ダウンロード|確認)(?:んで|中|して)(?:です|います|いる)?"
    r"|\b(?:запускаю|читаю|ищу|обрабатываю|загружаю|выполнено|выполняется)\b|جارٍ|جاري|اكتمل"
    r"|(?:실행|처리|검색|다운로드|읽는) ?중|\b\w+(?:ıyor|iyor|uyor|üyor|ılıyor|iliyor)\b.*\d"
    r"|\b(?:tamamlandı|çalıştırılıyor|okunuyor|yükleniyor)\b",
)
"""Words by which an agent or a tool reports what it is doing."""

SOCIAL: Final = Cue(
    r"^\W*(?:hi|hello|hey|dear|good (?:morning|afternoon|evening|night|luck)|welcome|bye|goodbye"
    r"|see you|thanks?|thank you|thx|cheers|congrat\w+|sorry|ok(?:ay)?|sure|yes|yep|yeah"
    r"|alright|great|perfect|awesome|nice|cool|wow|lol|noted|understood|got it|happy \w+|enjoy"
    r"|same here|you're|well done|long time|of course|no (?:worries|problem)|sounds good"
    r"|makes sense|exactly|what an?)\b",
    r"\b(?:weather|(?:your|nice|good|great) weekend|haha\w*|hehe\w*|lol|made my day|glad"
    r"|happy to help|appreciate"
    r"|apologi[sz]e|inconvenience|patience|frustrating|anything else|finds you well"
    r"|have a (?:nice"
    r"|great|good)|having a (?:nice|great|good)|your assistant|how can i help|so (?:hot|cold"
    r"|kind"
    r"|funny)|tired|coffee break|need more coffee|unbelievable|works for me|all clear"
    r"|let me know|sounds (?:like|good|great)|(?:looks?|seems?|sounds?|feels?) (?:good|fine"
    r"|ok(?:ay)?|reasonable|right|correct|odd|strange|promising|weird)"
    r"|clears things up|thanks a|as an ai|hope (?:this|that|it)|here you go|find attached"
    r"|raining"
    r"|hmm+|interesting|gorgeous|awful|beautiful|amazing|delicious|boring"
    r"|annoying|sleepy|got cold|traffic is|give me (?:a|two)|good (?:point|idea|catch|question)"
    r"|will do|great work)"
    r"\b",
    r"^\W*(?:yay|ha|haha|aw+|oops|ugh|phew|sorry|love the|good one|well done|wrong)\b"
    r"|\byour (?:message"
    r"|call|feedback|patience|business|request) is\b|\bwrong (?:window|chat|person|channel)\b",
    r"^\W*(?:na (?:dann|ja|gut)|kurz|viel (?:erfolg|spaß|glück)|hallo|guten|tschüss|danke|bitte"
    r"|gern\w*|alles klar|passt|schönes?|super|prima|moin"
    r"|servus|genau)\b|\b(?:wirklich (?:kalt|heiß|warm)|vielen dank|jederzeit"
    r"|schönes wochenende)\b",
    r"^\W*(?:hola|buen[oa]s|adiós|gracias|vale|perfecto|de nada|claro|qué|jaja\w*|hasta)\b"
    r"|\b(?:muchas gracias|qué gracioso|aquí estoy|vamos a ver|a ver|perdona|me he equivocado"
    r"|déjame|no pasa nada)\b",
    r"^\W*(?:bonjour|bonsoir|salut|merci|d'accord|de rien|bon(?:ne)?|super|ciao|buongiorno"
    r"|grazie"
    r"|va bene|prego|che bell\w|olá|oi|bom|boa|obrigad[oa]|tudo bem|ok)\b"
    r"|\b(?:pas de souci|votre temps|merci (?:beaucoup|pour)|grazie mille|obrigad[oa])\b",
    r"^(?:你好|您好|早上好|晚上好|好的|没事|没关系|慢慢|让我|稍等|明白|收到|谢谢|没问题|再见|不客气|嗯|哈哈)|天气|太好笑|辛苦了|早点休息",
    r"^(?:こんにちは|おはよう|こんばんは|ありがとう|了解|はい|ええと|すごい|なるほど|大丈夫|ちょっと|お先|お疲れ|承知|よろしく|すみません)"
    r"|(?:暑い|寒い|いい天気)です",
    r"^\W*(?:здравствуйте|привет|добр\w+|спасибо|хорош\w+|понял\w*|пожалуйста|до свидания|ок"
    r"|ничего|какая разница|секунд\w+|ладно|ну)\b"
    r"|^(?:مرحبا|أهلا|السلام|شكر|حسنا|صباح|مساء)",
    r"^(?:안녕|네|감사|알겠|좋아요)|날씨|ㅎㅎ|ㅋㅋ|감사합니다|^\W*(?:merhaba|selam|günaydın|teşekkür\w*"
    r"|tamam|rica)\b|\bhava (?:çok )?\w+\b|[\U0001f300-\U0001faff\u2600-\u27bf]",
)
"""Greetings, thanks, agreement and talk about nothing."""

TODAY: Final = Cue(
    r"\b(?:today|tonight|tomorrow|this (?:morning|afternoon|evening)|in the morning|heute"
    r"|(?<!guten )morgen|hoy"
    r"|aujourd'hui|demain|oggi|domani|hoje|amanhã|сегодня|завтра|bugün|yarın)\b|今天|明天|今日|明日"
    r"|오늘|내일|اليوم|غدا",
)
"""Days that soon are others: with no other value, a sentence about them is soon over."""

QUESTION_END: Final = Cue(r"(?:吗|呢|嗎)[。.]?$", r"(?:です|ます|でしょう|ました)か[。.]?$")
"""Questions of Chinese and Japanese without a mark."""

REQUEST: Final = Cue(
    r"^(?:please |kindly )?(?:can|could|would|will|may|any chance) (?:you|someone|we|i)\b"
    r"|^do you\b"
    r"|^(?:\w+, )?(?:quick question|i (?:have|had) an? (?:\w+ )?(?:question|problem|issue)"
    r"|i need help"
    r"|please (?:call|hold|wait|send me))\b",
)
"""Requests for something to be done once."""

COPULA: Final = Cue(r"^[\w'-]+ (?:is|was|are|ist|war|est|es|era|è|é)\b")
"""A sentence that says what one thing or person is, which may be short."""

REFERRING: Final = Cue(
    r"^(?:this|that|these|those|it|its|then|so|and|but|or|also|there|here|he|she|they|both"
    r"|neither"
    r"|das|dies\w*|es|er|sie|da|dann|und|aber|eso|esto|ese|esta|lo|y|pero|entonces|ça|cela|ce"
    r"|c'est|il|elle|et|mais|alors|questo|quello|ma|allora|isso|isto|ele|ela|mas|então|это|он"
    r"|она"
    r"|они|и|но|bu|şu)\b|^(?:这|那|它|他|她|これ|それ|あれ|彼|هذا|هذه|هو|هي|이것|그)",
)
"""Beginnings of sentences that say something of what the sentence before them names."""

CONTEXTUAL: Final = Cue(
    r"^\W*(?:right|ah|oh|deixa|give me)\b",
    r"^\W*(?:this|that|these|those|it|its|here|there|then|so|and|but|or|also|ok(?:ay)?|well"
    r"|i(?! \w+i\b)|i'\w+|we|we'\w+|you|you'\w+|let|let's|now|next|still|just|again|please|one"
    r"|what|how|why"
    r"|who|which|where|when|sorry|some|something|anyway|either|same|looks|seems|can|could|will"
    r"|would|should|do|does|did|is|are|was|were|done)\b",
    r"^\W*(?:yes|no|yeah|nope)[,.!:;]",
    r"^\W*(?:das|dies\w*|es|ich|wir|du|ihr|sie|da|dann|und|aber|also|hier|jetzt|gut|moment"
    r"|klingt"
    r"|passt|mal|eso|esto|ese|esta|yo|tú|me|te|lo|y|pero|entonces|ahora|ça|cela|ce|c'est|je"
    r"|j'\w+|tu"
    r"|on|nous|vous|et|mais|alors|questo|quello|io|ma|allora|che|isso|isto|eu|vou|mas|então)\b",
    r"^(?:这|那|我|我们|你|您|它|等|先|好|嗯|これ|それ|あれ|私|ちょっと|なるほど|では|じゃ|まあ)"
    r"|^\W*(?:это|я|мы|вы|ты|ну|а|и|но|так|тогда|там|здесь|bu|şu|ben|biz|sen|siz|peki)\b"
    r"|^(?:هذا|هذه|أنا|نحن|سأ|س|이거|그거|저는|우리(?! 팀| 회사)|잠깐|아 )",
)
"""Beginnings of sentences that say nothing without those before them, or about the speaker."""

NOISE_LINE: Final = Cue(
    r"^traceback \(|^\s*file \"[^\"]+\", line \d+|^\s*at [\w.$<>]+\(|^[\w.]+(?:error"
    r"|exception)\b"
    r"|^caused by: [\w.]+",
    r"^\[?\d{4}-\d\d-\d\d[t ]\d\d:\d\d(?::\d\d)?\S*\]?\s.*\b(?:info|warn(?:ing)?|debug|error"
    r"|trace"
    r"|fatal)\b|^\[(?:debug|info|warn(?:ing)?|error|trace)\]|^(?:debug|info|warning|error):",
    r"^http/\d|^[\w-]+: (?:application|text)/\w+|^(?:get|post|put|patch|delete|head) /\S*"
    r"|^content-\w+:",
    r"^[dl-](?:[r-][w-][xst-]){3}|^total \d+$|^pid +user\b|^ *% total\b|^\d+ \w+ +\d+\.\d+",
    r"^on branch \S+$|^your branch is |^nothing to commit|^\$ \S|^pass(?:ed)? \S+\.\w+|^warning:"
    r"|^fail(?:ed)? \S+\.\w+|^diff --git |^index [\da-f]+\.\.|^[+-]{3} [ab]/|^@@ "
    r"|^commit [\da-f]{7,}$",
    r"^(?:npm|yarn|pip|cargo) (?:warn|err!?|notice|info)\b|^requirement already satisfied"
    r"|^(?:collecting|solving|fetching) package|^error: failed to compile|^={3,} .*={3,}$",
    r"^\d\d:\d\d:\d\d|^(?:info|debug|warn|error|trace|fatal) +[\[(]|^\[[#=>. -]+\] *\d|;$"
    r"|^(?:added|removed|changed|audited) \d+ packages|^(?:const|let|var|function|public|private"
    r"|static|#include|package|use|fn|struct|export) \S+ ?[({=<;\"]",
    r"^\d{4}/\d\d/\d\d \d\d:|^successfully (?:installed|built)|\b\d+ (?:passed|failed"
    r"|skipped)(?:,| in)"
    r"|^test suites:| && |^rm -|^\+\d+$|^\^+$|^[iwef]\d{4} \d\d:|^fatal: "
    r"|\bexit(?:ed)? (?:with )?code \d+\W*$"
    r"|^\d+ files? changed|\bfor \w+ in .+:|^\[\d{4}-\d\d-\d\d[t ]\d\d:\d\d|^e  +\S"
    r"|^\d{3} (?:ok|created|not found|bad request)\b"
    r"|^> \w+ "
    r"|^(?:killed|aborted|segmentation fault|terminated|done|ok)\b[^a-z]{0,4}(?:\(.*\))?$"
    r"|^(?:[a-z]+ )?(?:count|elapsed|time|duration|size|total|usage|tokens?|latency|memory"
    r"|status)"
    r"(?: \w+)?: ?[\d:.,%]+ ?\w{0,3}$|^(?:writing|reading|counting|compressing"
    r"|receiving) \w+.*: ",
    r"^(?:heartbeat|ping|pong|keep-?alive|null|none|nil|undefined|exit code)\b[\w .:=-]{0,20}$",
    r"^\s*(?:def|class) \w+\(.*\):?$|^\s*(?:import|from) [\w.]+(?: import \w+)?$|^\s*return\b"
    r"|^(?:select|insert into|update|delete from) .+;$|^\s*(?:for|if|while) .+:$|^\s*self\.",
    r"^<(?:!doctype|html|\?xml|div|svg)\b|^(?:tool|function)[_ ]call\b|^\w+=\S+(?: \w+=\S+)+$",
    r"^[\w.-]+(?:/[\w.-]+)+/?$|^[─━═│┃|+-]{3,}|^[│|].*[│|]$|^[!-~]{24,}$",
    r"^[\da-f]{8,}(?: [\da-f]{8,})*$",
    r"^[^\t\n]+(?:\t[^\t\n]+){2,}$",
)
"""Lines that tools print: stack traces, logs, listings, programs, tables and heartbeats."""
